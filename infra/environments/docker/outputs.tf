# The same outputs, of the same types, in every environment: penstock.infra.environments reads them.

output "kafka" {
  description = "Kafka's bootstrap servers, security and topic layout; `secrets` has the secret references of the platform's users."
  value = {
    brokers  = module.stack.brokers
    layout   = "production"
    security = merge(module.stack.security, { secrets = {} })
  }
}

output "spark" {
  description = "Spark's master, or an application and the role of its jobs."
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
  description = "URL of the control store without password, and the secret reference of the password."
  value       = module.stack.control_store
}
