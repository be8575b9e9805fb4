locals {
  spark   = { directory = var.directory, first_port = var.first_port, jars = var.jars, secured = var.secured }
  numbers = toset([for number in range(1, var.workers + 1) : tostring(number)])
  names   = toset(concat(["spark-master"], [for number in local.numbers : "spark-worker-${number}"]))

  # As for brokers: the record says which process it is, the process whether it still is that program.
  records = { for name in local.names : name => try(jsondecode(file("${var.directory}/${name}.json")), null) }
  alive = {
    for name, record in local.records : name =>
    record == null ? false : strcontains(try(file("/proc/${record.pid}/cmdline"), ""), record.marker)
  }
  starts = { for name in local.names : name => local.alive[name] ? local.records[name].token : "planned at ${plantimestamp()}" }
}

resource "terraform_data" "spark" {
  input = { order = jsonencode({ directory = var.directory }), python = var.python }

  provisioner "local-exec" {
    interpreter = [self.input.python, "-m", "penstock.infra.local"]
    command     = "make-folder"
    environment = { PENSTOCK_ORDER = self.input.order }
  }

  provisioner "local-exec" {
    when        = destroy
    interpreter = [self.input.python, "-m", "penstock.infra.local"]
    command     = "remove-folder"
    environment = { PENSTOCK_ORDER = self.input.order }
  }
}

resource "terraform_data" "master" {
  depends_on = [terraform_data.spark]

  input = { order = jsonencode({ directory = var.directory, name = "spark-master" }), python = var.python }

  provisioner "local-exec" {
    when        = destroy
    interpreter = [self.input.python, "-m", "penstock.infra.local"]
    command     = "end-program"
    environment = { PENSTOCK_ORDER = self.input.order }
  }
}

resource "terraform_data" "master_running" {
  depends_on = [terraform_data.master]

  triggers_replace = { secured = var.secured, start = local.starts["spark-master"] }

  provisioner "local-exec" {
    interpreter = [var.python, "-m", "penstock.infra.local"]
    command     = "start-master"
    environment = { PENSTOCK_ORDER = jsonencode({ spark = local.spark, token = local.starts["spark-master"] }) }
  }
}

resource "terraform_data" "worker" {
  for_each   = local.numbers
  depends_on = [terraform_data.spark]

  input = {
    python = var.python
    order = jsonencode({
      directory = var.directory
      name      = "spark-worker-${each.key}"
      remove    = "${var.directory}/worker-${each.key}"
    })
  }

  provisioner "local-exec" {
    when        = destroy
    interpreter = [self.input.python, "-m", "penstock.infra.local"]
    command     = "end-program"
    environment = { PENSTOCK_ORDER = self.input.order }
  }
}

resource "terraform_data" "worker_running" {
  for_each   = local.numbers
  depends_on = [terraform_data.worker, terraform_data.master_running]

  triggers_replace = {
    cores     = var.cores
    memory_mb = var.memory_mb
    secured   = var.secured
    start     = local.starts["spark-worker-${each.key}"]
  }

  provisioner "local-exec" {
    interpreter = [var.python, "-m", "penstock.infra.local"]
    command     = "start-worker"
    environment = {
      PENSTOCK_ORDER = jsonencode({
        spark     = local.spark
        number    = tonumber(each.key)
        cores     = var.cores
        memory_mb = var.memory_mb
        token     = local.starts["spark-worker-${each.key}"]
      })
    }
  }
}
