variable "name" {
  description = "Prefix of everything's name, and the name of cluster, database and services."
  type        = string
}

variable "key_arn" {
  description = "Key that encrypts the alarms' topic."
  type        = string
}

variable "mail" {
  description = "Email address that receives alarms; empty sends none."
  type        = string
  default     = ""
}

variable "services" {
  description = "Services that must always run."
  type        = set(string)
}

variable "brokers" {
  description = "Number of Kafka brokers; each has its own disk."
  type        = number
}
