data "aws_caller_identity" "me" {}
data "aws_partition" "here" {}
data "aws_region" "here" {}

resource "aws_vpc" "this" {
  cidr_block           = var.cidr
  enable_dns_support   = true
  enable_dns_hostnames = true
  tags                 = { Name = var.name }
}

# The default group would let everything in it talk to everything else: it is emptied.
resource "aws_default_security_group" "closed" {
  vpc_id = aws_vpc.this.id
  tags   = { Name = "${var.name}-closed" }
}

resource "aws_subnet" "private" {
  for_each = { for index, zone in var.zones : zone => index }

  vpc_id                  = aws_vpc.this.id
  availability_zone       = each.key
  cidr_block              = cidrsubnet(var.cidr, 4, each.value)
  map_public_ip_on_launch = false
  tags                    = { Name = "${var.name}-private-${each.key}" }
}

# Only the local route: no internet gateway and no NAT.
resource "aws_route_table" "private" {
  vpc_id = aws_vpc.this.id
  tags   = { Name = "${var.name}-private" }
}

resource "aws_route_table_association" "private" {
  for_each = aws_subnet.private

  subnet_id      = each.value.id
  route_table_id = aws_route_table.private.id
}

resource "aws_flow_log" "this" {
  vpc_id               = aws_vpc.this.id
  traffic_type         = "REJECT"
  log_destination_type = "cloud-watch-logs"
  log_destination      = var.flow_log_group_arn
  iam_role_arn         = var.flow_log_role_arn
  tags                 = { Name = var.name }
}

resource "aws_vpc_endpoint" "s3" {
  vpc_id            = aws_vpc.this.id
  vpc_endpoint_type = "Gateway"
  service_name      = "com.amazonaws.${data.aws_region.here.name}.s3"
  route_table_ids   = [aws_route_table.private.id]
  policy            = data.aws_iam_policy_document.through["s3"].json
  tags              = { Name = "${var.name}-s3" }
}

resource "aws_vpc_endpoint" "services" {
  for_each = var.endpoints

  vpc_id              = aws_vpc.this.id
  vpc_endpoint_type   = "Interface"
  service_name        = "com.amazonaws.${data.aws_region.here.name}.${each.key}"
  subnet_ids          = [for subnet in aws_subnet.private : subnet.id]
  security_group_ids  = [aws_security_group.endpoints.id]
  private_dns_enabled = true
  policy              = data.aws_iam_policy_document.through[each.key].json
  tags                = { Name = "${var.name}-${each.key}" }
}

# Without a policy, an endpoint lets everybody's credentials do everything: also carry our data elsewhere.
locals {
  through = merge(
    { for service, actions in var.endpoints : service => { OnlyOurAccount = { actions = actions, resources = ["*"] } } },
    {
      s3 = {
        OurBuckets = {
          actions   = ["s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetBucketLocation", "s3:GetObject", "s3:ListBucket", "s3:PutObject"]
          resources = flatten([for arn in var.bucket_arns : [arn, "${arn}/*"]])
        }
        # They are the registry's own, and fetched with an address that it has signed.
        LayersOfImages = {
          actions   = ["s3:GetObject"]
          resources = ["arn:${data.aws_partition.here.partition}:s3:::prod-${data.aws_region.here.name}-starport-layer-bucket/*"]
          anybody   = true
        }
      }
    },
  )
}

data "aws_iam_policy_document" "through" {
  for_each = local.through

  dynamic "statement" {
    for_each = each.value

    content {
      sid       = statement.key
      actions   = statement.value.actions
      resources = statement.value.resources

      principals {
        type        = "AWS"
        identifiers = ["*"]
      }

      dynamic "condition" {
        for_each = try(statement.value.anybody, false) ? [] : [data.aws_caller_identity.me.account_id]

        content {
          test     = "StringEquals"
          variable = "aws:PrincipalAccount"
          values   = [condition.value]
        }
      }
    }
  }
}
