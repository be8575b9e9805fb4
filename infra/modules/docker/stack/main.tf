locals {
  file  = "${var.directory}/compose.yaml"
  parts = sort(flatten([for files in ["compose.yaml", "*.Dockerfile*", "*.lock", "certificates/*", "dagster/*", "postgres/*"] : tolist(fileset(var.directory, files))]))

  # What images are built from beside this folder: packages by their lock, and our code.
  root = "${var.directory}/.."
  code = sort(flatten([
    tolist(fileset(local.root, "requirements.lock")),
    tolist(fileset(local.root, "infra/build.lock")),
    [for folder in ["infra", "ingestion", "pipelines", "platform", "quality"] :
    [for file in fileset(local.root, "${folder}/penstock/**") : file if !strcontains(file, "__pycache__")]],
  ]))
}

# The stack as such: to lose it is to end every container and remove what they kept.
resource "terraform_data" "stack" {
  input = { docker = var.docker, file = local.file }

  provisioner "local-exec" {
    when        = destroy
    interpreter = [self.input.docker, "compose", "--file", self.input.file, "down"]
    command     = "--volumes"
  }

  lifecycle {
    precondition {
      condition     = fileexists("${var.directory}/secrets/control_store")
      error_message = "The control store has no password yet: write one into ${var.directory}/secrets/control_store."
    }
  }
}

# That it runs, and from what. The engine itself changes only containers whose part changed.
resource "terraform_data" "running" {
  depends_on = [terraform_data.stack]

  triggers_replace = {
    workers = var.workers
    parts   = { for part in local.parts : part => filesha256("${var.directory}/${part}") }
    code    = sha256(join("", [for file in local.code : "${file} ${filesha256("${local.root}/${file}")}\n"]))
  }

  provisioner "local-exec" {
    interpreter = [var.docker, "compose", "--file", local.file, "up", "--detach", "--wait", "--build", "--scale"]
    command     = "spark-worker=${var.workers}"
  }
}
