mock_provider "aws" {
  mock_data "aws_iam_policy_document" {
    defaults = { json = "{}" }
  }
}

variables {
  bucket  = "acme-warehouse"
  key_arn = "arn:aws:kms:eu-west-1:123456789012:key/1"
}

run "nothing_in_it_can_become_public" {
  assert {
    condition = alltrue([
      aws_s3_bucket_public_access_block.this.block_public_acls,
      aws_s3_bucket_public_access_block.this.block_public_policy,
      aws_s3_bucket_public_access_block.this.ignore_public_acls,
      aws_s3_bucket_public_access_block.this.restrict_public_buckets,
    ])
    error_message = "Public access is not blocked in every way."
  }

  assert {
    condition     = aws_s3_bucket_ownership_controls.this.rule[0].object_ownership == "BucketOwnerEnforced"
    error_message = "Access lists are in force."
  }
}

run "every_object_is_encrypted_with_the_customers_key" {
  assert {
    condition = alltrue([
      for rule in aws_s3_bucket_server_side_encryption_configuration.this.rule :
      rule.apply_server_side_encryption_by_default[0].sse_algorithm == "aws:kms" && rule.apply_server_side_encryption_by_default[0].kms_master_key_id == var.key_arn
    ])
    error_message = "Objects are not under our key."
  }
}

run "only_tls_is_spoken" {
  assert {
    condition     = [for statement in data.aws_iam_policy_document.bucket.statement : statement.effect if statement.sid == "OnlyOverTLS"] == ["Deny"]
    error_message = "Plain HTTP is not refused."
  }
}

run "what_was_overwritten_can_be_had_back_for_a_while" {
  assert {
    condition     = aws_s3_bucket_versioning.this.versioning_configuration[0].status == "Enabled"
    error_message = "Objects have no versions."
  }

  assert {
    condition     = contains([for rule in aws_s3_bucket_lifecycle_configuration.this.rule : rule.id if rule.status == "Enabled"], "old-versions")
    error_message = "Old versions are kept for ever."
  }
}

run "a_bucket_with_data_is_not_deleted_by_default" {
  assert {
    condition     = !aws_s3_bucket.this.force_destroy
    error_message = "Destroying deletes the data."
  }
}
