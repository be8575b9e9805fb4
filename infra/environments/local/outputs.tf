# The same outputs, of the same types, in every environment: penstock.infra.environments reads them.

output "kafka" {
  description = "Where Kafka is, how clients talk to it and how topics are kept; `secrets` says where our users' passwords are."
  value = {
    brokers  = module.kafka.brokers
    layout   = "production"
    security = module.kafka.security
  }
}

output "spark" {
  description = "How Spark is reached: a master, and where there is one an application and the role of its jobs."
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
  description = "Where the control store is, without a password, and the place of one."
  value = {
    url    = "sqlite:///${module.control_store.directory}/control.db"
    secret = ""
  }
}
