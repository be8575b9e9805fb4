# The same outputs, of the same types, in every environment: penstock.infra.environments reads them.

output "kafka" {
  description = "Where Kafka is, how clients talk to it and how topics are kept; `secrets` says where our users' passwords are."
  value = {
    brokers  = module.stack.brokers
    layout   = "production"
    security = merge(module.stack.security, { secrets = {} })
  }
}

output "spark" {
  description = "How Spark is reached: a master, and where there is one an application and the role of its jobs."
  value = {
    kind        = "standalone"
    master      = module.stack.master
    application = ""
    job_role    = ""
    secret      = ""
  }
}

output "warehouse" {
  description = "Where tables live."
  value       = { root = module.stack.warehouse }
}

output "control_store" {
  description = "Where the control store is, without a password, and the place of one."
  value       = module.stack.control_store
}
