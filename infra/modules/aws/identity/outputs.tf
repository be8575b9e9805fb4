output "role_arns" {
  description = "Services to their roles: flow, spark, orchestrator, start."
  value       = { for service, role in aws_iam_role.this : service => role.arn }
}
