package devices

func (v *Claims) FaultOnAny() *fault {
	for _, a := range v.Asks {
		if f := v.Fault(a, v.Devices); f != nil {
			return f
		}
	}
	return nil
}
