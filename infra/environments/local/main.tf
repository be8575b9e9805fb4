locals {
  home      = coalesce(var.home, abspath("${path.root}/../../../.penstock"))
  jars      = coalesce(var.jars, "${local.home}/jars")
  directory = "${local.home}/environments/local/run"
}

module "kafka" {
  source = "../../modules/local/kafka"

  directory  = "${local.directory}/kafka"
  jars       = local.jars
  python     = var.python
  first_port = var.first_port
  secured    = var.secured
  brokers    = var.brokers
  heap_mb    = var.broker_heap_mb
}

module "spark" {
  source = "../../modules/local/spark"

  directory  = "${local.directory}/spark"
  jars       = local.jars
  python     = var.python
  first_port = var.first_port + 30
  secured    = var.secured
  workers    = var.workers
  cores      = var.worker_cores
  memory_mb  = var.worker_memory_mb
}

module "warehouse" {
  source = "../../modules/local/folder"

  directory = "${local.directory}/warehouse"
  python    = var.python
}

module "control_store" {
  source = "../../modules/local/folder"

  directory = "${local.directory}/control"
  python    = var.python
}
