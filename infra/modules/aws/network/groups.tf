# A group for each service: whom it may talk to, and who may talk to it. Whoever is not named may not. What lies
# beyond (brokers, database, home) lets these groups in by rules of its own modules.

locals {
  reaches = merge([
    for service, ports in var.services : { for port in setunion(ports, [443]) : "${service}-${port}" => { service = service, port = port } }
  ]...)

  # Each by whom alone: Spark's workers among themselves, Dagster's parts their code, people the pages.
  listens = merge([
    for service, listener in var.listeners : {
      for caller in listener.callers : "${service}-from-${caller}" => { to = service, by = caller, first = listener.first, last = listener.last }
    }
  ]...)
}

resource "aws_security_group" "service" {
  for_each = var.services

  name        = "${var.name}-${each.key}"
  description = "Traffic from and to ${each.key} of ${var.name}"
  vpc_id      = aws_vpc.this.id
  tags        = { Name = "${var.name}-${each.key}" }
}

resource "aws_security_group" "endpoints" {
  name        = "${var.name}-endpoints"
  description = "AWS endpoints in this network"
  vpc_id      = aws_vpc.this.id
  tags        = { Name = "${var.name}-endpoints" }
}

resource "aws_vpc_security_group_ingress_rule" "between" {
  for_each = local.listens

  security_group_id            = aws_security_group.service[each.value.to].id
  description                  = "${each.value.to} from ${each.value.by}"
  referenced_security_group_id = aws_security_group.service[each.value.by].id
  ip_protocol                  = "tcp"
  from_port                    = each.value.first
  to_port                      = each.value.last
}

resource "aws_vpc_security_group_ingress_rule" "endpoints" {
  for_each = var.services

  security_group_id            = aws_security_group.endpoints.id
  description                  = "HTTPS from ${each.key}"
  referenced_security_group_id = aws_security_group.service[each.key].id
  ip_protocol                  = "tcp"
  from_port                    = 443
  to_port                      = 443
}

resource "aws_vpc_security_group_egress_rule" "to_network" {
  for_each = local.reaches

  security_group_id = aws_security_group.service[each.value.service].id
  description       = "To port ${each.value.port} in this network"
  cidr_ipv4         = var.cidr
  ip_protocol       = "tcp"
  from_port         = each.value.port
  to_port           = each.value.port
}

# A driver and its executors choose their ports.
resource "aws_vpc_security_group_egress_rule" "among_themselves" {
  for_each = { for name, rule in local.listens : name => rule if rule.to == rule.by }

  security_group_id            = aws_security_group.service[each.value.by].id
  description                  = "${each.value.by} among themselves"
  referenced_security_group_id = aws_security_group.service[each.value.to].id
  ip_protocol                  = "tcp"
  from_port                    = each.value.first
  to_port                      = each.value.last
}

resource "aws_vpc_security_group_egress_rule" "to_s3" {
  for_each = var.services

  security_group_id = aws_security_group.service[each.key].id
  description       = "To S3 through its gateway"
  prefix_list_id    = aws_vpc_endpoint.s3.prefix_list_id
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
}
