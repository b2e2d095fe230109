/** Countries: name, capital, region, currency, language, each in English and Chinese; then other names in English. */

export const COUNTRIES = `
France|法国|Paris|巴黎|Western Europe|西欧|euro|欧元|French|法语|French Republic
Germany|德国|Berlin|柏林|Central Europe|中欧|euro|欧元|German|德语|Federal Republic of Germany
Spain|西班牙|Madrid|马德里|Southern Europe|南欧|euro|欧元|Spanish|西班牙语|Kingdom of Spain
Portugal|葡萄牙|Lisbon|里斯本|Southern Europe|南欧|euro|欧元|Portuguese|葡萄牙语|Portuguese Republic
Italy|意大利|Rome|罗马|Southern Europe|南欧|euro|欧元|Italian|意大利语|Italian Republic
Greece|希腊|Athens|雅典|Southern Europe|南欧|euro|欧元|Greek|希腊语|Hellas
Poland|波兰|Warsaw|华沙|Central Europe|中欧|zloty|兹罗提|Polish|波兰语|Polska
Hungary|匈牙利|Budapest|布达佩斯|Central Europe|中欧|forint|福林|Hungarian|匈牙利语|Magyarország
Austria|奥地利|Vienna|维也纳|Central Europe|中欧|euro|欧元|German|德语|Österreich
Switzerland|瑞士|Bern|伯尔尼|Central Europe|中欧|Swiss franc|瑞士法郎|German|德语|Swiss Confederation
Netherlands|荷兰|Amsterdam|阿姆斯特丹|Western Europe|西欧|euro|欧元|Dutch|荷兰语|Holland
Belgium|比利时|Brussels|布鲁塞尔|Western Europe|西欧|euro|欧元|Dutch|荷兰语|België
Ireland|爱尔兰|Dublin|都柏林|Western Europe|西欧|euro|欧元|English|英语|Éire
Sweden|瑞典|Stockholm|斯德哥尔摩|Northern Europe|北欧|Swedish krona|瑞典克朗|Swedish|瑞典语|Sverige
Norway|挪威|Oslo|奥斯陆|Northern Europe|北欧|Norwegian krone|挪威克朗|Norwegian|挪威语|Norge
Denmark|丹麦|Copenhagen|哥本哈根|Northern Europe|北欧|Danish krone|丹麦克朗|Danish|丹麦语|Danmark
Finland|芬兰|Helsinki|赫尔辛基|Northern Europe|北欧|euro|欧元|Finnish|芬兰语|Suomi
Iceland|冰岛|Reykjavik|雷克雅未克|Northern Europe|北欧|Icelandic krona|冰岛克朗|Icelandic|冰岛语|Ísland
Czech Republic|捷克|Prague|布拉格|Central Europe|中欧|koruna|捷克克朗|Czech|捷克语|Czechia
Romania|罗马尼亚|Bucharest|布加勒斯特|Eastern Europe|东欧|leu|列伊|Romanian|罗马尼亚语|România
Bulgaria|保加利亚|Sofia|索非亚|Eastern Europe|东欧|lev|列弗|Bulgarian|保加利亚语|Republic of Bulgaria
Ukraine|乌克兰|Kyiv|基辅|Eastern Europe|东欧|hryvnia|格里夫纳|Ukrainian|乌克兰语|Ukraina
Russia|俄罗斯|Moscow|莫斯科|Eastern Europe|东欧|ruble|卢布|Russian|俄语|Russian Federation
Turkey|土耳其|Ankara|安卡拉|Western Asia|西亚|Turkish lira|土耳其里拉|Turkish|土耳其语|Türkiye
Egypt|埃及|Cairo|开罗|North Africa|北非|Egyptian pound|埃及镑|Arabic|阿拉伯语|Arab Republic of Egypt
Morocco|摩洛哥|Rabat|拉巴特|North Africa|北非|dirham|迪拉姆|Arabic|阿拉伯语|Kingdom of Morocco
Kenya|肯尼亚|Nairobi|内罗毕|East Africa|东非|Kenyan shilling|肯尼亚先令|Swahili|斯瓦希里语|Republic of Kenya
Ethiopia|埃塞俄比亚|Addis Ababa|亚的斯亚贝巴|East Africa|东非|birr|比尔|Amharic|阿姆哈拉语|Abyssinia
Nigeria|尼日利亚|Abuja|阿布贾|West Africa|西非|naira|奈拉|English|英语|Federal Republic of Nigeria
Ghana|加纳|Accra|阿克拉|West Africa|西非|cedi|塞地|English|英语|Gold Coast
South Africa|南非|Pretoria|比勒陀利亚|Southern Africa|南部非洲|rand|兰特|Zulu|祖鲁语|Rainbow Nation
Tanzania|坦桑尼亚|Dodoma|多多马|East Africa|东非|Tanzanian shilling|坦桑尼亚先令|Swahili|斯瓦希里语|Tanganyika
China|中国|Beijing|北京|East Asia|东亚|renminbi|人民币|Mandarin|普通话|People's Republic of China
Japan|日本|Tokyo|东京|East Asia|东亚|yen|日元|Japanese|日语|Nippon
South Korea|韩国|Seoul|首尔|East Asia|东亚|won|韩元|Korean|韩语|Republic of Korea
Mongolia|蒙古国|Ulaanbaatar|乌兰巴托|East Asia|东亚|tugrik|图格里克|Mongolian|蒙古语|Mongol Uls
India|印度|New Delhi|新德里|South Asia|南亚|Indian rupee|印度卢比|Hindi|印地语|Bharat
Pakistan|巴基斯坦|Islamabad|伊斯兰堡|South Asia|南亚|Pakistani rupee|巴基斯坦卢比|Urdu|乌尔都语|Islamic Republic of Pakistan
Nepal|尼泊尔|Kathmandu|加德满都|South Asia|南亚|Nepalese rupee|尼泊尔卢比|Nepali|尼泊尔语|Himalayan Republic
Bangladesh|孟加拉国|Dhaka|达卡|South Asia|南亚|taka|塔卡|Bengali|孟加拉语|East Bengal
Sri Lanka|斯里兰卡|Colombo|科伦坡|South Asia|南亚|Sri Lankan rupee|斯里兰卡卢比|Sinhala|僧伽罗语|Ceylon
Thailand|泰国|Bangkok|曼谷|Southeast Asia|东南亚|baht|泰铢|Thai|泰语|Siam
Vietnam|越南|Hanoi|河内|Southeast Asia|东南亚|dong|越南盾|Vietnamese|越南语|Viet Nam
Cambodia|柬埔寨|Phnom Penh|金边|Southeast Asia|东南亚|riel|瑞尔|Khmer|高棉语|Kampuchea
Myanmar|缅甸|Naypyidaw|内比都|Southeast Asia|东南亚|kyat|缅元|Burmese|缅甸语|Burma
Malaysia|马来西亚|Kuala Lumpur|吉隆坡|Southeast Asia|东南亚|ringgit|林吉特|Malay|马来语|Malaya
Indonesia|印度尼西亚|Jakarta|雅加达|Southeast Asia|东南亚|rupiah|印尼盾|Indonesian|印尼语|Dutch East Indies
Philippines|菲律宾|Manila|马尼拉|Southeast Asia|东南亚|Philippine peso|菲律宾比索|Filipino|菲律宾语|Pilipinas
Singapore|新加坡|Singapore City|新加坡市|Southeast Asia|东南亚|Singapore dollar|新加坡元|Malay|马来语|Lion City
Iran|伊朗|Tehran|德黑兰|Western Asia|西亚|rial|里亚尔|Persian|波斯语|Persia
Iraq|伊拉克|Baghdad|巴格达|Western Asia|西亚|Iraqi dinar|伊拉克第纳尔|Arabic|阿拉伯语|Mesopotamia
Saudi Arabia|沙特阿拉伯|Riyadh|利雅得|Western Asia|西亚|riyal|沙特里亚尔|Arabic|阿拉伯语|KSA
Israel|以色列|Jerusalem|耶路撒冷|Western Asia|西亚|shekel|谢克尔|Hebrew|希伯来语|State of Israel
Jordan|约旦|Amman|安曼|Western Asia|西亚|Jordanian dinar|约旦第纳尔|Arabic|阿拉伯语|Hashemite Kingdom
Kazakhstan|哈萨克斯坦|Astana|阿斯塔纳|Central Asia|中亚|tenge|坚戈|Kazakh|哈萨克语|Qazaqstan
Uzbekistan|乌兹别克斯坦|Tashkent|塔什干|Central Asia|中亚|som|苏姆|Uzbek|乌兹别克语|Republic of Uzbekistan
Canada|加拿大|Ottawa|渥太华|North America|北美洲|Canadian dollar|加拿大元|English|英语|Great White North
Mexico|墨西哥|Mexico City|墨西哥城|North America|北美洲|Mexican peso|墨西哥比索|Spanish|西班牙语|United Mexican States
Cuba|古巴|Havana|哈瓦那|Caribbean|加勒比|Cuban peso|古巴比索|Spanish|西班牙语|Republic of Cuba
Brazil|巴西|Brasília|巴西利亚|South America|南美洲|real|雷亚尔|Portuguese|葡萄牙语|Brasil
Argentina|阿根廷|Buenos Aires|布宜诺斯艾利斯|South America|南美洲|Argentine peso|阿根廷比索|Spanish|西班牙语|Argentine Republic
Chile|智利|Santiago|圣地亚哥|South America|南美洲|Chilean peso|智利比索|Spanish|西班牙语|Republic of Chile
Peru|秘鲁|Lima|利马|South America|南美洲|sol|索尔|Spanish|西班牙语|Perú
Colombia|哥伦比亚|Bogotá|波哥大|South America|南美洲|Colombian peso|哥伦比亚比索|Spanish|西班牙语|New Granada
Ecuador|厄瓜多尔|Quito|基多|South America|南美洲|US dollar|美元|Spanish|西班牙语|Republic of Ecuador
Uruguay|乌拉圭|Montevideo|蒙得维的亚|South America|南美洲|Uruguayan peso|乌拉圭比索|Spanish|西班牙语|Eastern Republic
Australia|澳大利亚|Canberra|堪培拉|Oceania|大洋洲|Australian dollar|澳元|English|英语|Commonwealth of Australia
New Zealand|新西兰|Wellington|惠灵顿|Oceania|大洋洲|New Zealand dollar|新西兰元|Māori|毛利语|Aotearoa
Fiji|斐济|Suva|苏瓦|Oceania|大洋洲|Fijian dollar|斐济元|Fijian|斐济语|Viti
`
