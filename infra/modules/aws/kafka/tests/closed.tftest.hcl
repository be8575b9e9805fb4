mock_provider "aws" {
  mock_resource "aws_msk_configuration" {
    defaults = { arn = "arn:aws:kafka:eu-west-1:123456789012:configuration/acme/1", latest_revision = 1 }
  }
  mock_resource "aws_msk_cluster" {
    defaults = {
      arn                          = "arn:aws:kafka:eu-west-1:123456789012:cluster/acme/1"
      bootstrap_brokers_sasl_iam   = "b-2.acme:9098,b-1.acme:9098"
      bootstrap_brokers_sasl_scram = "b-2.acme:9096,b-1.acme:9096"
    }
  }
}

variables {
  name             = "acme"
  vpc_id           = "vpc-1"
  subnet_ids       = ["subnet-1", "subnet-2", "subnet-3"]
  client_group_ids = { host = "sg-1" }
  keeper_group_id  = "sg-keepers"
  key_arn          = "arn:aws:kms:eu-west-1:123456789012:key/1"
  log_group        = "/acme/kafka"
}

run "everything_is_encrypted_with_the_customers_key" {
  assert {
    condition     = aws_msk_cluster.this.encryption_info[0].encryption_at_rest_kms_key_arn == var.key_arn
    error_message = "What brokers keep is not under our key."
  }

  assert {
    condition     = aws_msk_cluster.this.encryption_info[0].encryption_in_transit[0].client_broker == "TLS" && aws_msk_cluster.this.encryption_info[0].encryption_in_transit[0].in_cluster
    error_message = "Something on the wire is not encrypted."
  }
}

run "nothing_is_public" {
  assert {
    condition     = aws_msk_cluster.this.broker_node_group_info[0].connectivity_info[0].public_access[0].type == "DISABLED"
    error_message = "Brokers can be reached from outside."
  }

  assert {
    condition     = alltrue([for rule in aws_vpc_security_group_ingress_rule.from_clients : rule.cidr_ipv4 == null && rule.referenced_security_group_id == "sg-1"]) && alltrue([for rule in aws_vpc_security_group_ingress_rule.from_keepers : rule.cidr_ipv4 == null && rule.referenced_security_group_id == "sg-keepers"])
    error_message = "Others than our own are let in."
  }
}

run "nobody_is_let_in_without_a_name" {
  assert {
    condition     = coalesce(aws_msk_cluster.this.client_authentication[0].unauthenticated, false) == false
    error_message = "Clients need not say who they are."
  }
}

run "under_scram_a_role_can_still_give_the_users_their_permissions" {
  variables {
    authentication = "scram"
  }
  assert {
    condition     = aws_msk_cluster.this.client_authentication[0].sasl[0].iam && aws_msk_cluster.this.client_authentication[0].sasl[0].scram && aws_vpc_security_group_ingress_rule.from_clients["host"].from_port == 9096 && aws_vpc_security_group_ingress_rule.from_keepers["by-role"].from_port == 9098
    error_message = "Users who may do nothing at first could never be allowed anything."
  }
  assert {
    condition     = strcontains(aws_msk_configuration.this.server_properties, "allow.everyone.if.no.acl.found=false")
    error_message = "A user without permissions has all."
  }
}

run "losing_a_broker_loses_nothing" {
  assert {
    condition     = strcontains(aws_msk_configuration.this.server_properties, "min.insync.replicas=2") && strcontains(aws_msk_configuration.this.server_properties, "default.replication.factor=3") && strcontains(aws_msk_configuration.this.server_properties, "unclean.leader.election.enable=false")
    error_message = "A topic would not survive the loss of a broker."
  }
}

run "outputs_follow_the_way_of_authentication" {
  variables {
    authentication = "scram"
  }
  assert {
    condition     = join(",", output.brokers) == "b-1.acme:9096,b-2.acme:9096" && output.security.mechanism == "SCRAM-SHA-512"
    error_message = "The outputs speak of another listener than the one that is open."
  }
}

run "users_are_added_once_their_secrets_have_values" {
  variables {
    authentication    = "scram"
    scram_secret_arns = ["arn:aws:secretsmanager:eu-west-1:123456789012:secret:AmazonMSK_acme_host"]
  }
  assert {
    condition     = length(aws_msk_scram_secret_association.this) == 1
    error_message = "The users were not given to Kafka."
  }
}

run "four_brokers_in_three_zones_are_refused" {
  command = plan
  variables {
    brokers = 4
  }
  expect_failures = [aws_msk_cluster.this]
}

run "two_brokers_are_refused" {
  command = plan
  variables {
    brokers = 2
  }
  expect_failures = [var.brokers]
}
