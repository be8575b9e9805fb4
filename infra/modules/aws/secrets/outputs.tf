output "key_arn" {
  description = "The customer's key that encrypts everything."
  value       = aws_kms_key.this.arn
}

output "kafka_secrets" {
  description = "Kafka users to the names and ARNs of their secrets."
  value       = { for user, secret in aws_secretsmanager_secret.kafka : user => { name = secret.name, arn = secret.arn } }
}

output "database_secrets" {
  description = "PostgreSQL users to the names and ARNs of their secrets."
  value       = { for user, secret in aws_secretsmanager_secret.database : user => { name = secret.name, arn = secret.arn } }
}
