output "root" {
  description = "Where tables live: the path that raw/, panes/ and the others are under."
  value       = "s3://${aws_s3_bucket.this.bucket}/warehouse"
}

output "bucket_arn" {
  description = "The bucket, for policies."
  value       = aws_s3_bucket.this.arn
}
