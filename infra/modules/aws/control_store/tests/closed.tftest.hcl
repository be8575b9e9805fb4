mock_provider "aws" {
  mock_resource "aws_db_instance" {
    defaults = {
      endpoint           = "acme.internal:5432"
      address            = "acme.internal"
      master_user_secret = [{ secret_arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:rds", kms_key_id = "", secret_status = "active" }]
    }
  }
}

variables {
  name             = "acme"
  vpc_id           = "vpc-1"
  subnet_ids       = ["subnet-1", "subnet-2"]
  client_group_ids = { host = "sg-1", daemon = "sg-2" }
  key_arn          = "arn:aws:kms:eu-west-1:123456789012:key/1"
}

run "it_is_closed_and_encrypted" {
  assert {
    condition     = !aws_db_instance.this.publicly_accessible && alltrue([for rule in aws_vpc_security_group_ingress_rule.from_clients : rule.cidr_ipv4 == null])
    error_message = "The database can be reached from outside."
  }

  assert {
    condition     = aws_db_instance.this.storage_encrypted && aws_db_instance.this.kms_key_id == var.key_arn && aws_db_instance.this.performance_insights_kms_key_id == var.key_arn
    error_message = "Something is not under our key."
  }

  assert {
    condition     = contains([for parameter in aws_db_parameter_group.this.parameter : "${parameter.name}=${parameter.value}"], "rds.force_ssl=1")
    error_message = "Connections without TLS are let in."
  }
}

run "no_password_passes_through_terraform" {
  assert {
    condition     = aws_db_instance.this.manage_master_user_password && aws_db_instance.this.password == null && aws_db_instance.this.master_user_secret_kms_key_id == var.key_arn
    error_message = "The password is not RDS's own affair."
  }

  assert {
    condition     = output.url == "postgresql+psycopg://penstock@acme.internal:5432/penstock?sslmode=verify-full&sslrootcert=/opt/penstock/certificates/rds.pem" && startswith(output.dagster_url, "postgresql://dagster@acme.internal:5432/dagster?sslmode=verify-full&")
    error_message = "A URL holds a password, is the keeper's, or trusts whoever answers."
  }
}

run "it_survives_mistakes" {
  assert {
    condition     = aws_db_instance.this.deletion_protection && !aws_db_instance.this.skip_final_snapshot && aws_db_instance.this.backup_retention_period >= 7
    error_message = "A mistake would lose the control store."
  }
}

run "its_log_is_encrypted_and_ends" {
  assert {
    condition     = aws_cloudwatch_log_group.postgresql.name == "/aws/rds/instance/acme/postgresql" && aws_cloudwatch_log_group.postgresql.kms_key_id == var.key_arn && aws_cloudwatch_log_group.postgresql.retention_in_days == 30
    error_message = "RDS would make the log group itself."
  }
}
