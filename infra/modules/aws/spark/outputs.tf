output "application" {
  description = "The application's id: what a job is submitted to."
  value       = aws_emrserverless_application.this.id
}

output "application_arn" {
  description = "The application, for policies."
  value       = aws_emrserverless_application.this.arn
}
