resource "aws_cloudwatch_log_group" "this" {
  for_each = var.parts

  name              = "/${var.name}/${each.key}"
  retention_in_days = var.days
  kms_key_id        = var.key_arn
}
