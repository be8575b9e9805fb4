mock_provider "aws" {
  mock_data "aws_region" {
    defaults = { name = "eu-west-1" }
  }
  mock_data "aws_iam_policy_document" {
    defaults = { json = "{}" }
  }
}

variables {
  name               = "acme"
  zones              = ["eu-west-1a", "eu-west-1b", "eu-west-1c"]
  bucket_arns        = ["arn:aws:s3:::acme"]
  flow_log_group_arn = "arn:aws:logs:eu-west-1:123456789012:log-group:/acme/flow"
  flow_log_role_arn  = "arn:aws:iam::123456789012:role/acme-flow"
  services           = { web = [4000], code = [5432], spark = [9096], keepers = [3000] }
  listeners = {
    web   = { first = 3000, last = 3000, callers = ["keepers"] }
    code  = { first = 4000, last = 4000, callers = ["web"] }
    spark = { first = 1024, last = 65535, callers = ["spark"] }
  }
}

run "no_machine_gets_a_public_address" {
  assert {
    condition     = length(aws_subnet.private) == 3 && alltrue([for subnet in aws_subnet.private : !subnet.map_public_ip_on_launch])
    error_message = "A subnet gives out public addresses."
  }
}

run "there_is_no_way_out_to_the_internet" {
  assert {
    condition     = length(coalesce(aws_route_table.private.route, [])) == 0
    error_message = "The route table has a route of its own."
  }
}

run "nobody_outside_may_come_in" {
  assert {
    condition = alltrue([
      for rule in concat(values(aws_vpc_security_group_ingress_rule.between), values(aws_vpc_security_group_ingress_rule.endpoints)) :
      rule.cidr_ipv4 == null && rule.cidr_ipv6 == null && rule.referenced_security_group_id != null
    ])
    error_message = "A rule lets in addresses instead of one of our groups."
  }
}

run "a_service_is_reached_by_those_alone_who_call_it" {
  assert {
    condition     = { for name, rule in aws_vpc_security_group_ingress_rule.between : name => "${rule.from_port}-${rule.to_port}" } == { web-from-keepers = "3000-3000", code-from-web = "4000-4000", spark-from-spark = "1024-65535" }
    error_message = "A service can be reached by others, or at other ports."
  }

  assert {
    condition     = aws_vpc_security_group_ingress_rule.between["code-from-web"].referenced_security_group_id == aws_security_group.service["web"].id && aws_vpc_security_group_ingress_rule.between["code-from-web"].security_group_id == aws_security_group.service["code"].id
    error_message = "A rule is about other groups than its name says."
  }
}

run "a_service_talks_to_nothing_but_what_was_said" {
  assert {
    condition     = alltrue([for rule in aws_vpc_security_group_egress_rule.to_network : rule.cidr_ipv4 == var.cidr && rule.from_port == rule.to_port])
    error_message = "Our own may talk to more than this network and S3."
  }

  assert {
    condition     = toset([for name, rule in aws_vpc_security_group_egress_rule.to_network : rule.from_port if startswith(name, "code-")]) == toset([443, 5432])
    error_message = "A service may talk to ports that it was not given."
  }
}

run "the_default_group_is_empty" {
  assert {
    condition     = length(coalesce(aws_default_security_group.closed.ingress, [])) == 0 && length(coalesce(aws_default_security_group.closed.egress, [])) == 0
    error_message = "The default group lets something through."
  }
}

run "subnets_do_not_overlap" {
  assert {
    condition     = length(distinct([for subnet in aws_subnet.private : subnet.cidr_block])) == 3
    error_message = "Two subnets share addresses."
  }
}

run "one_zone_is_refused" {
  command = plan
  variables {
    zones = ["eu-west-1a"]
  }
  expect_failures = [var.zones]
}

run "every_way_to_aws_says_what_may_be_done_there" {
  assert {
    condition = alltrue(flatten([
      for document in data.aws_iam_policy_document.through :
      [for statement in document.statement : [for action in statement.actions : !strcontains(action, "*")]]
    ]))
    error_message = "An endpoint allows actions by a wildcard."
  }

  assert {
    condition = alltrue([
      for service, document in data.aws_iam_policy_document.through :
      alltrue([for statement in document.statement : length(coalesce(statement.condition, [])) == 1 || statement.sid == "LayersOfImages"])
    ])
    error_message = "An endpoint takes credentials of other accounts."
  }
}
