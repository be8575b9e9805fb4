# A role for each service, and one for each start of a task, which is handed that task's secrets and no other's. What
# each may do is in permissions.tf, and nothing else is allowed anywhere. Dagster's webserver and daemon ask AWS for
# nothing, so they have a start and no role.

locals {
  services = merge(
    {
      flow  = "vpc-flow-logs.amazonaws.com"
      spark = "emr-serverless.amazonaws.com"
      host  = "ecs-tasks.amazonaws.com"
      code  = "ecs-tasks.amazonaws.com"
    },
    { for service in keys(var.started) : "start-${service}" => "ecs-tasks.amazonaws.com" },
  )
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
        for_each = try([statement.value.only_where], [])

        content {
          test     = "StringEquals"
          variable = condition.value.variable
          values   = [condition.value.is]
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
