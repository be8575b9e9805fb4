locals {
  cluster = { directory = var.directory, first_port = var.first_port, jars = var.jars, secured = var.secured }
  users   = toset(["host", "ingestion", "topics"])
  nodes   = toset([for node in range(1, var.brokers + 1) : tostring(node)])

  # Topics' partitions on brokers that are to go.
  leaving = [
    for found in fileset(var.directory, "broker-*/data/*/partition.metadata") : found
    if !contains(local.nodes, trimprefix(split("/", found)[0], "broker-"))
  ]
}

# The cluster as such: formed once, removed with all its data.
resource "terraform_data" "cluster" {
  input = { order = jsonencode(local.cluster), python = var.python }

  provisioner "local-exec" {
    interpreter = [self.input.python, "-m", "penstock.infra.local"]
    command     = "form-cluster"
    environment = { PENSTOCK_ORDER = self.input.order }
  }

  provisioner "local-exec" {
    when        = destroy
    interpreter = [self.input.python, "-m", "penstock.infra.local"]
    command     = "remove-cluster"
    environment = { PENSTOCK_ORDER = self.input.order }
  }

  lifecycle {
    precondition {
      condition     = try(jsondecode(file("${var.directory}/cluster.json")).secured, var.secured) == var.secured
      error_message = "A cluster is secured from its beginning or not at all. Destroy it first, with what it holds."
    }

    precondition {
      condition     = length(local.leaving) == 0
      error_message = "A broker that is to go still holds partitions (${join(", ", slice(local.leaving, 0, min(3, length(local.leaving))))}). Move them to other brokers first."
    }
  }
}

# The brokers: started with other settings, they restart one after the other, and their data stay where they are.
module "broker" {
  source     = "../program"
  for_each   = local.nodes
  depends_on = [terraform_data.cluster]

  directory = var.directory
  name      = "broker-${each.key}"
  holds     = "${var.directory}/broker-${each.key}"
  python    = var.python
  action    = "start-broker"
  order     = { cluster = local.cluster, node = tonumber(each.key), brokers = var.brokers, heap_mb = var.heap_mb }
  restarts  = { heap_mb = var.heap_mb }
}

# Users of a secured cluster: created over TLS, with passwords from files that Terraform never reads.
resource "terraform_data" "users" {
  count      = var.secured ? 1 : 0
  depends_on = [module.broker]

  triggers_replace = { users = local.users }

  provisioner "local-exec" {
    interpreter = [var.python, "-m", "penstock.infra.local"]
    command     = "grant-users"
    environment = { PENSTOCK_ORDER = jsonencode({ cluster = local.cluster, brokers = var.brokers }) }
  }
}
