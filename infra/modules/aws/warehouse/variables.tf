variable "bucket" {
  description = "The bucket's name; unique in all of AWS."
  type        = string
}

variable "key_arn" {
  description = "Key that encrypts every object."
  type        = string
}

variable "keep_old_versions_days" {
  description = "How long a replaced or deleted object can be had back."
  type        = number
  default     = 30
}

variable "archive_raw_after_days" {
  description = "When raw records move to storage that is cheaper to keep and dearer to read."
  type        = number
  default     = 90

  validation {
    condition     = var.archive_raw_after_days >= 30
    error_message = "Objects must be at least 30 days old before they can be moved."
  }
}

variable "delete_with_contents" {
  description = "Whether destroying the bucket deletes its objects. Set false where the data matters."
  type        = bool
  default     = false
}
