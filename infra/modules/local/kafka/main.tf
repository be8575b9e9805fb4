locals {
  cluster = { directory = var.directory, first_port = var.first_port, jars = var.jars, secured = var.secured }
  users   = toset(["host", "ingestion", "topics"])
  nodes   = toset([for node in range(1, var.brokers + 1) : tostring(node)])

  # What each broker's record says, and whether the process it names still is that broker: a plan looks,
  # and needs no server for it.
  records = { for node in local.nodes : node => try(jsondecode(file("${var.directory}/broker-${node}.json")), null) }
  alive = {
    for node, record in local.records : node =>
    record == null ? false : strcontains(try(file("/proc/${record.pid}/cmdline"), ""), record.marker)
  }

  # A start that is still good keeps its name; what is down gets a new one, and by that is started.
  starts = { for node in local.nodes : node => local.alive[node] ? local.records[node].token : "planned at ${plantimestamp()}" }

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

# A broker's place in the cluster: to lose it is to end the broker and remove what it holds.
resource "terraform_data" "broker" {
  for_each   = local.nodes
  depends_on = [terraform_data.cluster]

  input = {
    python = var.python
    order = jsonencode({
      directory = var.directory
      name      = "broker-${each.key}"
      remove    = "${var.directory}/broker-${each.key}"
    })
  }

  provisioner "local-exec" {
    when        = destroy
    interpreter = [self.input.python, "-m", "penstock.infra.local"]
    command     = "end-program"
    environment = { PENSTOCK_ORDER = self.input.order }
  }
}

# That the broker runs, and how. It is replaced when either changes; its data stay where they are, and the
# brokers restart one after the other.
resource "terraform_data" "running" {
  for_each   = local.nodes
  depends_on = [terraform_data.broker]

  triggers_replace = { heap_mb = var.heap_mb, start = local.starts[each.key] }

  provisioner "local-exec" {
    interpreter = [var.python, "-m", "penstock.infra.local"]
    command     = "start-broker"
    environment = {
      PENSTOCK_ORDER = jsonencode({
        cluster = local.cluster
        node    = tonumber(each.key)
        brokers = var.brokers
        heap_mb = var.heap_mb
        token   = local.starts[each.key]
      })
    }
  }
}

# A secured cluster's users: made over TLS, with passwords from files that Terraform never reads.
resource "terraform_data" "users" {
  count      = var.secured ? 1 : 0
  depends_on = [terraform_data.running]

  triggers_replace = { users = local.users }

  provisioner "local-exec" {
    interpreter = [var.python, "-m", "penstock.infra.local"]
    command     = "grant-users"
    environment = { PENSTOCK_ORDER = jsonencode({ cluster = local.cluster, brokers = var.brokers }) }
  }
}
