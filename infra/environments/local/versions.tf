terraform {
  required_version = ">= 1.6"

  backend "local" {
    path = "../../../.penstock/environments/local/terraform.tfstate"
  }
}
