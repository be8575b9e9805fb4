variable "name" {
  description = "Prefix of everything's name; log groups are named /NAME/PART."
  type        = string
}

variable "parts" {
  description = "The parts that write logs, a group each."
  type        = set(string)
}

variable "key_arn" {
  description = "Key that encrypts the logs."
  type        = string
}

variable "days" {
  description = "How long logs are kept."
  type        = number
  default     = 30
}
