output "url" {
  description = "Where Dagster's pages are, from inside the network."
  value       = "http://webserver.${aws_service_discovery_private_dns_namespace.this.name}:3000"
}

output "repositories" {
  description = "Images to where they are pushed."
  value       = { for name, repository in aws_ecr_repository.this : name => repository.repository_url }
}

output "repository_arns" {
  description = "Images to their repositories, for policies."
  value       = { for name, repository in aws_ecr_repository.this : name => repository.arn }
}
