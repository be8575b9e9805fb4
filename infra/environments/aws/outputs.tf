# The same outputs, of the same types, in every environment: penstock.infra.environments reads them.

output "kafka" {
  description = "Where Kafka is, how clients talk to it and how topics are kept; `secrets` names the secret of each user."
  value = {
    brokers = module.kafka.brokers
    layout  = "production"
    security = merge(module.kafka.security, {
      secrets = { for user, secret in module.secrets.kafka_secrets : user => secret.name }
    })
  }
}

output "spark" {
  description = "How Spark is reached: a standalone master's URL, or an application and the role of its jobs."
  value = {
    kind        = "emr-serverless"
    master      = ""
    application = module.spark.application
    job_role    = module.identity.role_arns["spark"]
    secret      = ""
  }
}

output "warehouse" {
  description = "Where tables live."
  value       = { root = module.warehouse.root }
}

output "control_store" {
  description = "Where the control store is, without a password, and the secret that holds one."
  value = {
    url    = module.control_store.url
    secret = module.control_store.secret_arn
  }
}

output "orchestrator" {
  description = "Where Dagster's pages are."
  value       = { url = module.orchestrator.url }
}
