variable "directory" {
  description = "The folder; it is removed with all that is in it."
  type        = string
}

variable "python" {
  description = "The Python that penstock is installed in."
  type        = string
}
