module "stack" {
  source = "../../modules/docker/stack"

  directory = abspath("${path.root}/../../../docker")
  docker    = var.docker
  workers   = var.workers
}
