output "url" {
  description = "Where the database is, without a password."
  value       = "postgresql+psycopg://${local.user}@${aws_db_instance.this.endpoint}/${local.database}?sslmode=require"
}

output "address" {
  description = "The database's host."
  value       = aws_db_instance.this.address
}

output "secret_arn" {
  description = "The secret that holds user and password."
  value       = aws_db_instance.this.master_user_secret[0].secret_arn
}

output "dagster_url" {
  description = "Where Dagster's own database is, on the same machine, without a password; it is made by hand, once."
  value       = "postgresql://${local.user}@${aws_db_instance.this.endpoint}/dagster?sslmode=require"
}
