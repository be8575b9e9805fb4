# One role a service. What each may do is in permissions.tf, and nothing else is allowed anywhere.

locals {
  services = {
    flow         = "vpc-flow-logs.amazonaws.com"
    spark        = "emr-serverless.amazonaws.com"
    orchestrator = "ecs-tasks.amazonaws.com"
    start        = "ecs-tasks.amazonaws.com"
  }
}

data "aws_caller_identity" "me" {}

data "aws_iam_policy_document" "trust" {
  for_each = local.services

  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = [each.value]
    }

    condition {
      test     = "StringEquals"
      variable = "aws:SourceAccount"
      values   = [data.aws_caller_identity.me.account_id]
    }
  }
}

data "aws_iam_policy_document" "does" {
  for_each = local.permissions

  dynamic "statement" {
    for_each = { for name, permission in each.value : name => permission if length(permission.resources) > 0 }

    content {
      sid       = statement.key
      actions   = statement.value.actions
      resources = statement.value.resources

      dynamic "condition" {
        for_each = try([statement.value.passed_to], [])

        content {
          test     = "StringEquals"
          variable = "iam:PassedToService"
          values   = [condition.value]
        }
      }
    }
  }
}

resource "aws_iam_role" "this" {
  for_each = local.services

  name               = "${var.name}-${each.key}"
  assume_role_policy = data.aws_iam_policy_document.trust[each.key].json
}

resource "aws_iam_role_policy" "this" {
  for_each = local.permissions

  name   = "what-it-does"
  role   = aws_iam_role.this[each.key].id
  policy = data.aws_iam_policy_document.does[each.key].json
}
