/** Inventions and discoveries: what, by whom, when; in English and Chinese. */

export const INVENTIONS = `
Telephone|电话|Alexander Graham Bell|亚历山大·贝尔|1876
Phonograph|留声机|Thomas Edison|托马斯·爱迪生|1877
Dynamite|硝化甘油炸药|Alfred Nobel|阿尔弗雷德·诺贝尔|1867
Penicillin|青霉素|Alexander Fleming|亚历山大·弗莱明|1928
X-ray|X射线|Wilhelm Röntgen|威廉·伦琴|1895
Radium isolation|镭的发现|Marie Curie|玛丽·居里|1898
Movable type|活字印刷|Bi Sheng|毕昇|1040
Papermaking|造纸术|Cai Lun|蔡伦|105
Seismoscope|地动仪|Zhang Heng|张衡|132
World Wide Web|万维网|Tim Berners-Lee|蒂姆·伯纳斯-李|1989
Pasteurization|巴氏消毒法|Louis Pasteur|路易·巴斯德|1864
Steam engine with separate condenser|分离冷凝器蒸汽机|James Watt|詹姆斯·瓦特|1769
Electric battery|电池|Alessandro Volta|亚历山德罗·伏打|1800
Dynamo principle|电磁感应|Michael Faraday|迈克尔·法拉第|1831
Periodic table|元素周期表|Dmitri Mendeleev|德米特里·门捷列夫|1869
Powered aeroplane|动力飞机|Wright brothers|莱特兄弟|1903
Rotary printing of film|电影放映机|Lumière brothers|卢米埃尔兄弟|1895
Wireless telegraphy|无线电报|Guglielmo Marconi|古列尔莫·马可尼|1896
Heliocentric system|日心说|Nicolaus Copernicus|尼古拉·哥白尼|1543
Artemisinin|青蒿素|Tu Youyou|屠呦呦|1972
Hybrid rice|杂交水稻|Yuan Longping|袁隆平|1973
Smallpox vaccine|牛痘疫苗|Edward Jenner|爱德华·詹纳|1796
Braille|盲文|Louis Braille|路易·布莱叶|1824
Linux kernel|Linux内核|Linus Torvalds|林纳斯·托瓦兹|1991
Mercury barometer|水银气压计|Evangelista Torricelli|埃万杰利斯塔·托里拆利|1643
`
/** Rivers: name, length in kilometres, where it ends, where it flows; English and Chinese. */
export const RIVERS = `
Yangtze|长江|6300|East China Sea|东海|China|中国
Yellow River|黄河|5464|Bohai Sea|渤海|China|中国
Nile|尼罗河|6650|Mediterranean Sea|地中海|Egypt|埃及
Amazon|亚马孙河|6400|Atlantic Ocean|大西洋|Brazil|巴西
Danube|多瑙河|2850|Black Sea|黑海|Hungary|匈牙利
Rhine|莱茵河|1230|North Sea|北海|Germany|德国
Seine|塞纳河|777|English Channel|英吉利海峡|France|法国
Volga|伏尔加河|3530|Caspian Sea|里海|Russia|俄罗斯
Mekong|湄公河|4350|South China Sea|南海|Cambodia|柬埔寨
Ganges|恒河|2525|Bay of Bengal|孟加拉湾|India|印度
Indus|印度河|3180|Arabian Sea|阿拉伯海|Pakistan|巴基斯坦
Murray|墨累河|2508|Southern Ocean|南大洋|Australia|澳大利亚
Niger|尼日尔河|4180|Gulf of Guinea|几内亚湾|Nigeria|尼日利亚
Tigris|底格里斯河|1900|Persian Gulf|波斯湾|Iraq|伊拉克
Vistula|维斯瓦河|1047|Baltic Sea|波罗的海|Poland|波兰
Tagus|塔霍河|1007|Lisbon estuary|里斯本河口|Portugal|葡萄牙
Irrawaddy|伊洛瓦底江|2170|Andaman Sea|安达曼海|Myanmar|缅甸
Magdalena|马格达莱纳河|1528|Caribbean Sea|加勒比海|Colombia|哥伦比亚
`
