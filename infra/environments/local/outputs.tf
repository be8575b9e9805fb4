# The same outputs, of the same types, in every environment: penstock.infra.environments reads them.

output "kafka" {
  description = "Kafka's bootstrap servers, security and topic layout; `secrets` has the secret references of the platform's users."
  value = {
    brokers  = module.kafka.brokers
    layout   = "production"
    security = module.kafka.security
  }
}

output "spark" {
  description = "Spark's master, or an application and the role of its jobs."
  value = {
    kind        = "standalone"
    master      = module.spark.master
    application = ""
    job_role    = ""
    secret      = module.spark.secret
  }
}

output "warehouse" {
  description = "Where tables live."
  value       = { root = module.warehouse.directory }
}

output "control_store" {
  description = "URL of the control store without password, and the secret reference of the password."
  value = {
    url    = "sqlite:///${module.control_store.directory}/control.db"
    secret = ""
  }
}
