output "url" {
  description = "Where the database is, without a password."
  value       = "postgresql+psycopg://penstock@${local.address}/penstock?${local.checked}"
}

output "dagster_url" {
  description = "Where Dagster's own database is, on the same machine, without a password."
  value       = "postgresql://dagster@${local.address}/dagster?${local.checked}"
}

output "keeper_secret_arn" {
  description = "Secret with the password of the admin user, which creates users and runs no service."
  value       = aws_db_instance.this.master_user_secret[0].secret_arn
}
