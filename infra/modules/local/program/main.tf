locals {
  # What the program's record says, and whether the process it names still is that program: a plan looks, and
  # needs no server for it.
  record = try(jsondecode(file("${var.directory}/${var.name}.json")), null)
  alive  = local.record == null ? false : strcontains(try(file("/proc/${local.record.pid}/cmdline"), ""), local.record.marker)

  # A running program keeps its start name; a program that is down gets a new name, which starts it.
  start = local.alive ? local.record.token : "${local.record == null ? "planned" : "found down"} at ${plantimestamp()}"
}

# The program's folder: destroying it stops the program and removes its data.
resource "terraform_data" "place" {
  input = {
    python = var.python
    order  = jsonencode(merge({ directory = var.directory, name = var.name }, var.holds == "" ? {} : { remove = var.holds }))
  }

  provisioner "local-exec" {
    when        = destroy
    interpreter = [self.input.python, "-m", "penstock.infra.local"]
    command     = "end-program"
    environment = { PENSTOCK_ORDER = self.input.order }
  }
}

# That it runs, and how. It is replaced when either changes; what it holds stays where it is.
resource "terraform_data" "running" {
  depends_on = [terraform_data.place]

  triggers_replace = merge(var.restarts, { start = local.start })

  provisioner "local-exec" {
    interpreter = [var.python, "-m", "penstock.infra.local"]
    command     = var.action
    environment = { PENSTOCK_ORDER = jsonencode(merge(var.order, { token = local.start })) }
  }
}
