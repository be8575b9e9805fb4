variable "name" {
  description = "Prefix of everything's name."
  type        = string
}

variable "kafka_principals" {
  description = "Kafka users that get an empty secret of their own; values are put in by hand, never by Terraform."
  type        = set(string)
  default     = []
}

variable "database_users" {
  description = "PostgreSQL users that get an empty secret of their own, filled by hand as Kafka's are."
  type        = set(string)
  default     = ["dagster", "penstock"]
}

variable "recovery_days" {
  description = "How long a removed secret and the removed key can be had back, in days."
  type        = number
  default     = 30

  validation {
    condition     = var.recovery_days >= 7 && var.recovery_days <= 30
    error_message = "Recovery must be between 7 and 30 days."
  }
}
