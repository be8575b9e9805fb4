# The same outputs, of the same types, in every environment: penstock.infra.environments reads them.

output "kafka" {
  description = "Kafka's bootstrap servers, security and topic layout; `secrets` has the secret references of the platform's users."
  value = {
    brokers = module.kafka.brokers
    layout  = "production"
    security = merge(module.kafka.security, {
      secrets = { for user in local.users : user => "env:KAFKA_${upper(user)}" }
    })
  }
}

output "spark" {
  description = "Spark's master, or an application and the role of its jobs."
  value = {
    kind        = "emr-serverless"
    master      = var.host_master
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
  description = "URL of the control store without password, and the secret reference of the password."
  value = {
    url    = module.control_store.url
    secret = "env:CONTROL_STORE"
  }
}

output "orchestrator" {
  description = "Where Dagster's pages are."
  value       = { url = module.services.url }
}

output "images" {
  description = "Images to where they are pushed, under the tag that `image_tag` names."
  value       = module.services.repositories
}

output "secrets" {
  description = "Names of the secrets that are filled by hand: Kafka's users and PostgreSQL's."
  value = {
    kafka    = { for user, secret in module.secrets.kafka_secrets : user => secret.name }
    database = { for user, secret in module.secrets.database_secrets : user => secret.name }
  }
}

output "groups" {
  description = "Security groups for clients that are not managed here: producers, and user sessions inside the network."
  value       = { for who in ["keepers", "producers"] : who => module.network.group_ids[who] }
}

output "keeper" {
  description = "Secret with the password of PostgreSQL's admin user."
  value       = module.control_store.keeper_secret_arn
}
