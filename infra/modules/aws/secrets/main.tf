data "aws_caller_identity" "me" {}
data "aws_partition" "here" {}
data "aws_region" "here" {}

locals {
  root = "arn:${data.aws_partition.here.partition}:iam::${data.aws_caller_identity.me.account_id}:root"
  logs = "arn:${data.aws_partition.here.partition}:logs:${data.aws_region.here.name}:${data.aws_caller_identity.me.account_id}:log-group:"

  # Ours, and those that RDS and Container Insights write to.
  groups = ["/${var.name}/", "/aws/rds/instance/${var.name}/", "/aws/ecs/containerinsights/${var.name}/"]
}

# A key's policy speaks of that key alone: "*" as its resource means the key itself.
data "aws_iam_policy_document" "key" {
  statement {
    sid       = "TheAccountDecidesWhoUsesIt"
    resources = ["*"]
    actions = [
      "kms:CancelKeyDeletion",
      "kms:CreateAlias",
      "kms:CreateGrant",
      "kms:Decrypt",
      "kms:DeleteAlias",
      "kms:DescribeKey",
      "kms:DisableKey",
      "kms:EnableKey",
      "kms:EnableKeyRotation",
      "kms:Encrypt",
      "kms:GenerateDataKey",
      "kms:GenerateDataKeyWithoutPlaintext",
      "kms:GetKeyPolicy",
      "kms:GetKeyRotationStatus",
      "kms:ListGrants",
      "kms:ListKeyPolicies",
      "kms:ListResourceTags",
      "kms:PutKeyPolicy",
      "kms:ReEncryptFrom",
      "kms:ReEncryptTo",
      "kms:RevokeGrant",
      "kms:ScheduleKeyDeletion",
      "kms:TagResource",
      "kms:UntagResource",
      "kms:UpdateAlias",
      "kms:UpdateKeyDescription",
    ]
    principals {
      type        = "AWS"
      identifiers = [local.root]
    }
  }

  statement {
    sid       = "LogsOfThisEnvironment"
    resources = ["*"]
    actions   = ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey", "kms:ReEncryptFrom", "kms:ReEncryptTo"]
    principals {
      type        = "Service"
      identifiers = ["logs.${data.aws_region.here.name}.amazonaws.com"]
    }
    condition {
      test     = "ArnLike"
      variable = "kms:EncryptionContext:aws:logs:arn"
      values   = [for group in local.groups : "${local.logs}${group}*"]
    }
  }

  statement {
    sid       = "AlarmsIntoTheEncryptedTopic"
    resources = ["*"]
    actions   = ["kms:Decrypt", "kms:GenerateDataKey"]
    principals {
      type        = "Service"
      identifiers = ["budgets.amazonaws.com", "cloudwatch.amazonaws.com"]
    }
    condition {
      test     = "StringEquals"
      variable = "aws:SourceAccount"
      values   = [data.aws_caller_identity.me.account_id]
    }
  }
}

resource "aws_kms_key" "this" {
  description             = "Everything that ${var.name} keeps"
  enable_key_rotation     = true
  deletion_window_in_days = var.recovery_days
  policy                  = data.aws_iam_policy_document.key.json
}

resource "aws_kms_alias" "this" {
  name          = "alias/${var.name}"
  target_key_id = aws_kms_key.this.key_id
}

# MSK accepts only secrets with this name prefix and a customer key. They are created empty:
# a value that Terraform knew would be in its state.
resource "aws_secretsmanager_secret" "kafka" {
  for_each = var.kafka_principals

  name                    = "AmazonMSK_${var.name}_${each.key}"
  description             = "Kafka user ${each.key}: {\"username\": …, \"password\": …}"
  kms_key_id              = aws_kms_key.this.arn
  recovery_window_in_days = var.recovery_days
}

resource "aws_secretsmanager_secret" "database" {
  for_each = var.database_users

  name                    = "${var.name}/database/${each.key}"
  description             = "PostgreSQL user ${each.key}: {\"username\": …, \"password\": …}"
  kms_key_id              = aws_kms_key.this.arn
  recovery_window_in_days = var.recovery_days
}
