output "role_arns" {
  description = "Services to their roles: flow, spark, host, code, and start-SERVICE for each that is started as a task."
  value       = { for service, role in aws_iam_role.this : service => role.arn }
}
