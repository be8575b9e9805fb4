output "groups" {
  description = "Parts to their log group's name and ARN."
  value       = { for part, group in aws_cloudwatch_log_group.this : part => { name = group.name, arn = group.arn } }
}
