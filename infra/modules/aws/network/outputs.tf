output "vpc_id" {
  description = "The network."
  value       = aws_vpc.this.id
}

output "subnet_ids" {
  description = "The private subnets, in the order of the zones."
  value       = [for zone in var.zones : aws_subnet.private[zone].id]
}

output "client_group_id" {
  description = "Security group for everything that talks to Kafka, the control store or AWS."
  value       = aws_security_group.this["clients"].id
}
