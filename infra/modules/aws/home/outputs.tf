output "place" {
  description = "The file system and the door to it, for tasks; there once they can mount it."
  value       = { file_system_id = aws_efs_file_system.this.id, access_point_id = aws_efs_access_point.this.id }
  depends_on  = [aws_efs_mount_target.this, aws_efs_file_system_policy.this]
}

output "file_system_arn" {
  description = "The file system, for policies."
  value       = aws_efs_file_system.this.arn
}

output "access_point_arn" {
  description = "The door to it, for policies."
  value       = aws_efs_access_point.this.arn
}
