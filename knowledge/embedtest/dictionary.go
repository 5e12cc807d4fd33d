package embedtest

import "strings"

// dictionary has everyday words of the trade in other languages, and what they mean.
var dictionary = words(`
knoten node noeud node nœud node nodo node węzeł node węźle node węzła node ノード node 节点 node 節點 node
karte card karta card carte card cartes card tarjeta card
gpus gpu grafikkarte gpu
pods pod pody pod
wartet waits warten waits attend waits attente waits espera waits esperando waits czeka waits czekają waits pending waits waiting waits 待機 waits
frei free freie free libre free libres free wolne free 空いています free idle free
belegt held occupé held ocupado held ocupadas held taken held used held busy held
geschnitten split découpées split pocięta split cut split sliced split
tranche slice tranches slice slices slice scheibe slice
quote quota kontingent quota 枠 quota
schlange queue warteschlange queue cola queue
treiber driver pilote driver controlador driver ドライバ driver
fehler error erreur error błąd error エラー error errors error
neustart reboot redémarrage reboot reinicio reboot restart reboot rebooted reboot 重启 reboot 再起動 reboot
speicher memory mémoire memory memoria memory メモリ memory 内存 memory
etikett label étiquette label etiqueta label etykieta label etykiety label метка label 标签 label ラベル label
konfiguration config configuration config configuración config
wartung maintenance mantenimiento maintenance
uncordoned cordon cordoned cordon unschedulable cordon schedulingdisabled cordon
toleration taint tolerieren taint tolera taint tolerate taint tolerated taint tolerancję taint
évincé evict vertrieben evict evicted evict
fragmentation fragmented fragmentiert fragmented defrag fragmented holes fragmented pieces fragmented scattered fragmented contiguës fragmented contiguous fragmented
läuft works działa works funciona works marche works fixed works resolved works
`)

var everyday = func() map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq("a an and are as at be but by for from has have in is it its no not of on or that the them they this to was we were with you i der die das und ist nicht auf für le la les de et est el los que se no w na i jest że の は が を に で です ます") {
		out[w] = true
	}
	return out
}()

func words(table string) map[string]string {
	out, fields := map[string]string{}, strings.Fields(table)
	for n := 0; n+1 < len(fields); n += 2 {
		out[fields[n]] = fields[n+1]
	}
	return out
}
