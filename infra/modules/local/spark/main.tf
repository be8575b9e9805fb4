locals {
  spark = { directory = var.directory, first_port = var.first_port, jars = var.jars, secured = var.secured }
}

module "folder" {
  source = "../folder"

  directory = var.directory
  python    = var.python
}

module "master" {
  source     = "../program"
  depends_on = [module.folder]

  directory = var.directory
  name      = "spark-master"
  python    = var.python
  action    = "start-master"
  order     = { spark = local.spark }
  restarts  = { secured = var.secured, rest_server = false }
}

module "worker" {
  source     = "../program"
  for_each   = toset([for number in range(1, var.workers + 1) : tostring(number)])
  depends_on = [module.master]

  directory = var.directory
  name      = "spark-worker-${each.key}"
  holds     = "${var.directory}/worker-${each.key}"
  python    = var.python
  action    = "start-worker"
  order     = { spark = local.spark, number = tonumber(each.key), cores = var.cores, memory_mb = var.memory_mb }
  restarts  = { cores = var.cores, memory_mb = var.memory_mb, secured = var.secured }
}
