mock_provider "aws" {
  mock_data "aws_iam_policy_document" {
    defaults = { json = "{}" }
  }
  mock_resource "aws_efs_file_system" {
    defaults = { arn = "arn:aws:elasticfilesystem:eu-west-1:123456789012:file-system/fs-1" }
  }
  mock_resource "aws_efs_access_point" {
    defaults = { arn = "arn:aws:elasticfilesystem:eu-west-1:123456789012:access-point/fsap-1" }
  }
}

variables {
  name             = "acme"
  vpc_id           = "vpc-1"
  subnet_ids       = ["subnet-1", "subnet-2", "subnet-3"]
  client_group_ids = { host = "sg-1", code = "sg-2" }
  role_arns        = ["arn:aws:iam::123456789012:role/acme-host"]
  key_arn          = "arn:aws:kms:eu-west-1:123456789012:key/1"
}

run "it_is_encrypted_with_the_customers_key_and_backed_up" {
  assert {
    condition     = aws_efs_file_system.this.encrypted && aws_efs_file_system.this.kms_key_id == var.key_arn && aws_efs_backup_policy.this.backup_policy[0].status == "ENABLED"
    error_message = "Streams' state is not under our key, or is kept once."
  }
}

run "only_tls_is_spoken" {
  assert {
    condition = [
      for statement in data.aws_iam_policy_document.home.statement : [statement.effect, tolist(statement.condition)[0].variable, tolist(tolist(statement.condition)[0].values)[0]]
      if statement.sid == "OnlyOverTLS"
    ] == [["Deny", "aws:SecureTransport", "false"]]
    error_message = "Somebody could read along."
  }
}

run "who_may_come_in_is_named_and_comes_by_the_door" {
  assert {
    condition = alltrue([
      for statement in data.aws_iam_policy_document.home.statement :
      tolist(tolist(statement.principals)[0].identifiers) == var.role_arns && tolist(statement.condition)[0].values == tolist([aws_efs_access_point.this.arn])
      if statement.effect != "Deny"
    ])
    error_message = "Others than our services, or our services around the door, could mount it."
  }

  assert {
    condition     = alltrue([for rule in aws_vpc_security_group_ingress_rule.from_clients : rule.cidr_ipv4 == null && rule.from_port == 2049 && rule.to_port == 2049]) && toset(keys(aws_vpc_security_group_ingress_rule.from_clients)) == toset(["host", "code"])
    error_message = "Others than our services can reach it."
  }

  assert {
    condition     = aws_efs_access_point.this.posix_user[0].uid == 10001 && aws_efs_access_point.this.root_directory[0].creation_info[0].permissions == "0700"
    error_message = "Whoever mounts it is not our containers' user."
  }
}

run "it_is_reached_from_every_zone" {
  assert {
    condition     = length(aws_efs_mount_target.this) == 3
    error_message = "A task in one of the zones would not find its home."
  }
}
