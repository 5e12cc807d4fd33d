package view

const StrategySingle = "single"
