output "vpc_id" {
  description = "The network."
  value       = aws_vpc.this.id
}

output "subnet_ids" {
  description = "The private subnets, in the order of the zones."
  value       = [for zone in var.zones : aws_subnet.private[zone].id]
}

output "group_ids" {
  description = "Services to the security groups they wear."
  value       = { for service, group in aws_security_group.service : service => group.id }
}
