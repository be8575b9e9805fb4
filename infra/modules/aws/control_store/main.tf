locals {
  address = aws_db_instance.this.endpoint
  # Clients send the password only to a server with a certificate of the RDS authority for this name.
  checked = "sslmode=verify-full&sslrootcert=${var.authority_file}"
}

resource "aws_db_subnet_group" "this" {
  name       = var.name
  subnet_ids = var.subnet_ids
}

resource "aws_security_group" "database" {
  name        = "${var.name}-control-store"
  description = "The control store"
  vpc_id      = var.vpc_id
  tags        = { Name = "${var.name}-control-store" }
}

resource "aws_vpc_security_group_ingress_rule" "from_clients" {
  for_each = var.client_group_ids

  security_group_id            = aws_security_group.database.id
  description                  = "PostgreSQL from ${each.key}"
  referenced_security_group_id = each.value
  ip_protocol                  = "tcp"
  from_port                    = 5432
  to_port                      = 5432
}

resource "aws_db_parameter_group" "this" {
  name        = "${var.name}-postgres16"
  family      = "postgres16"
  description = "TLS for everybody"

  parameter {
    name  = "rds.force_ssl"
    value = "1"
  }
}

# RDS would make it itself: under its own key, and for ever.
resource "aws_cloudwatch_log_group" "postgresql" {
  name              = "/aws/rds/instance/${var.name}/postgresql"
  retention_in_days = var.log_days
  kms_key_id        = var.key_arn
}

resource "aws_db_instance" "this" {
  identifier     = var.name
  engine         = "postgres"
  engine_version = "16"
  instance_class = var.instance_class

  db_name  = "penstock"
  username = "keeper"
  # RDS makes keeper's password, keeps it in Secrets Manager and changes it every week; Terraform never sees it.
  # Whoever is handed a password when it starts would have an old one then, so no service logs in as keeper:
  # users.sql makes users of their own.
  manage_master_user_password   = true
  master_user_secret_kms_key_id = var.key_arn

  allocated_storage     = var.storage_gb
  max_allocated_storage = var.storage_gb * 4
  storage_type          = "gp3"
  storage_encrypted     = true
  kms_key_id            = var.key_arn

  multi_az               = var.two_zones
  db_subnet_group_name   = aws_db_subnet_group.this.name
  vpc_security_group_ids = [aws_security_group.database.id]
  parameter_group_name   = aws_db_parameter_group.this.name
  publicly_accessible    = false

  backup_retention_period         = 14
  copy_tags_to_snapshot           = true
  auto_minor_version_upgrade      = true
  enabled_cloudwatch_logs_exports = ["postgresql"]
  performance_insights_enabled    = true
  performance_insights_kms_key_id = var.key_arn

  deletion_protection       = var.protected
  skip_final_snapshot       = !var.protected
  final_snapshot_identifier = var.protected ? "${var.name}-last" : null

  depends_on = [aws_cloudwatch_log_group.postgresql]
}
