variable "name" {
  description = "Prefix of everything's name."
  type        = string
}

variable "monthly_usd" {
  description = "What a month may cost, in US dollars."
  type        = number
}

variable "topic_arn" {
  description = "SNS topic for notifications when spending approaches the budget."
  type        = string
}
