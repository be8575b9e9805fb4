# The platform's home: what must outlive a task and is no table. State, journals and checkpoints of streams, ledgers of
# producers, what is quarantined and sent again. A file system rather than a bucket, for the journal needs hard links,
# renames that replace, and files that are written down when fsync returns.
resource "aws_efs_file_system" "this" {
  creation_token  = var.name
  encrypted       = true
  kms_key_id      = var.key_arn
  throughput_mode = "elastic"
  tags            = { Name = "${var.name}-home" }
}

resource "aws_efs_backup_policy" "this" {
  file_system_id = aws_efs_file_system.this.id

  backup_policy {
    status = "ENABLED"
  }
}

resource "aws_security_group" "home" {
  name        = "${var.name}-home"
  description = "The platform's home"
  vpc_id      = var.vpc_id
  tags        = { Name = "${var.name}-home" }
}

resource "aws_vpc_security_group_ingress_rule" "from_clients" {
  for_each = var.client_group_ids

  security_group_id            = aws_security_group.home.id
  description                  = "NFS inside TLS from ${each.key}"
  referenced_security_group_id = each.value
  ip_protocol                  = "tcp"
  from_port                    = 2049
  to_port                      = 2049
}

resource "aws_efs_mount_target" "this" {
  count = length(var.subnet_ids)

  file_system_id  = aws_efs_file_system.this.id
  subnet_id       = var.subnet_ids[count.index]
  security_groups = [aws_security_group.home.id]
}

# Every client of the access point acts as the containers' user, and sees only this folder.
resource "aws_efs_access_point" "this" {
  file_system_id = aws_efs_file_system.this.id
  tags           = { Name = "${var.name}-home" }

  posix_user {
    uid = 10001
    gid = 10001
  }

  root_directory {
    path = "/penstock"

    creation_info {
      owner_uid   = 10001
      owner_gid   = 10001
      permissions = "0700"
    }
  }
}

data "aws_iam_policy_document" "home" {
  statement {
    sid       = "OursThroughTheirDoor"
    actions   = ["elasticfilesystem:ClientMount", "elasticfilesystem:ClientWrite"]
    resources = [aws_efs_file_system.this.arn]

    principals {
      type        = "AWS"
      identifiers = var.role_arns
    }

    condition {
      test     = "StringEquals"
      variable = "elasticfilesystem:AccessPointArn"
      values   = [aws_efs_access_point.this.arn]
    }
  }

  statement {
    sid       = "OnlyOverTLS"
    effect    = "Deny"
    actions   = ["elasticfilesystem:ClientMount", "elasticfilesystem:ClientRootAccess", "elasticfilesystem:ClientWrite"]
    resources = [aws_efs_file_system.this.arn]

    principals {
      type        = "AWS"
      identifiers = ["*"]
    }

    condition {
      test     = "Bool"
      variable = "aws:SecureTransport"
      values   = ["false"]
    }
  }
}

resource "aws_efs_file_system_policy" "this" {
  file_system_id = aws_efs_file_system.this.id
  policy         = data.aws_iam_policy_document.home.json
}
