locals {
  # Port of the TLS listener inside the network, by way of authentication.
  ports = { iam = 9098, scram = 9096 }
}

resource "aws_security_group" "brokers" {
  name        = "${var.name}-brokers"
  description = "Kafka's brokers"
  vpc_id      = var.vpc_id
  tags        = { Name = "${var.name}-brokers" }
}

resource "aws_vpc_security_group_ingress_rule" "from_clients" {
  for_each = var.client_group_ids

  security_group_id            = aws_security_group.brokers.id
  description                  = "TLS with ${var.authentication} from ${each.key}"
  referenced_security_group_id = each.value
  ip_protocol                  = "tcp"
  from_port                    = local.ports[var.authentication]
  to_port                      = local.ports[var.authentication]
}

# By role is always a way in for keepers: under SCRAM nobody may do anything at first, and only a role may give the
# users their permissions (../../../environments/README.md says how). They may read the metrics, too.
resource "aws_vpc_security_group_ingress_rule" "from_keepers" {
  for_each = { by-role = [9098, 9098], metrics = [11001, 11002] }

  security_group_id            = aws_security_group.brokers.id
  description                  = "${each.key} from keepers"
  referenced_security_group_id = var.keeper_group_id
  ip_protocol                  = "tcp"
  from_port                    = each.value[0]
  to_port                      = each.value[1]
}

resource "aws_msk_configuration" "this" {
  name           = var.name
  kafka_versions = [var.kafka_version]

  # One setting a line; the last one keeps a client without an ACL out under SCRAM.
  server_properties = <<-EOT
    auto.create.topics.enable=false
    default.replication.factor=3
    min.insync.replicas=2
    unclean.leader.election.enable=false
    allow.everyone.if.no.acl.found=false
  EOT

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_msk_cluster" "this" {
  cluster_name           = var.name
  kafka_version          = var.kafka_version
  number_of_broker_nodes = var.brokers
  enhanced_monitoring    = "PER_TOPIC_PER_BROKER"

  configuration_info {
    arn      = aws_msk_configuration.this.arn
    revision = aws_msk_configuration.this.latest_revision
  }

  broker_node_group_info {
    instance_type   = var.instance_type
    client_subnets  = var.subnet_ids
    security_groups = [aws_security_group.brokers.id]

    connectivity_info {
      public_access {
        type = "DISABLED"
      }
    }

    storage_info {
      ebs_storage_info {
        volume_size = var.storage_gb
      }
    }
  }

  client_authentication {
    sasl {
      iam   = true
      scram = var.authentication == "scram"
    }
  }

  encryption_info {
    encryption_at_rest_kms_key_arn = var.key_arn

    encryption_in_transit {
      client_broker = "TLS"
      in_cluster    = true
    }
  }

  open_monitoring {
    prometheus {
      jmx_exporter {
        enabled_in_broker = true
      }
      node_exporter {
        enabled_in_broker = true
      }
    }
  }

  logging_info {
    broker_logs {
      cloudwatch_logs {
        enabled   = true
        log_group = var.log_group
      }
    }
  }

  lifecycle {
    precondition {
      condition     = var.brokers % length(var.subnet_ids) == 0
      error_message = "The number of brokers must be a multiple of the number of subnets."
    }
  }
}

resource "aws_msk_scram_secret_association" "this" {
  count = var.authentication == "scram" && length(var.scram_secret_arns) > 0 ? 1 : 0

  cluster_arn     = aws_msk_cluster.this.arn
  secret_arn_list = var.scram_secret_arns
}
