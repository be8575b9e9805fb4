variable "name" {
  description = "Prefix of everything's name."
  type        = string
}

variable "vpc_id" {
  description = "The network that the file system is reached in."
  type        = string
}

variable "subnet_ids" {
  description = "Private subnets that it is reached from, one a zone."
  type        = list(string)
}

variable "client_group_ids" {
  description = "Clients to the security group whose members may reach it."
  type        = map(string)
}

variable "role_arns" {
  description = "Roles that may mount it."
  type        = list(string)
}

variable "key_arn" {
  description = "Key that encrypts what it holds."
  type        = string
}
