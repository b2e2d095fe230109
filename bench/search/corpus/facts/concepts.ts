/**
 * Ideas of computing and science: title, alias, tags (with /), what it is, in English and then in Chinese; then a
 * question in each language with words of the alias, the tags or everyday life instead of the title.
 */

export const CONCEPTS = `
Binary search|half-interval search|algorithms/lookup|Repeatedly halves a sorted array until the wanted value is found, in logarithmic time.|二分查找|折半搜索|算法/查找|在有序数组中反复折半，直到找到目标值，时间为对数级。|how do I quickly locate a value in a sorted list by halving|怎样在排好序的列表里用折半的办法快速定位一个数
Hash table|dictionary structure|data structures/lookup|Maps keys to buckets by a hash function, so that reading takes constant time on average.|哈希表|散列表|数据结构/查找|用散列函数把键映射到桶，平均读取时间为常数。|which data structure finds keys in constant time through buckets|哪种数据结构用桶存放键并能在常数时间读取
Garbage collection|automatic memory reclamation|memory/runtime|Frees objects that no reference reaches any more, without the programmer's help.|垃圾回收|自动内存回收|内存/运行时|自动释放不再被引用的对象，无需程序员干预。|runtime frees memory of unreachable objects automatically|程序运行时自动释放没有引用的对象的内存
Deadlock|mutual waiting|concurrency/locking|Two threads hold a lock each and wait for the other's for ever.|死锁|相互等待|并发/锁|两个线程各持一把锁，并永远等待对方的锁。|two threads waiting forever for each other's lock|两个线程互相等待对方的锁一直不动
Load balancing|traffic distribution|networking/scaling|Spreads incoming requests over several servers so that none is overwhelmed.|负载均衡|流量分发|网络/扩展|把进入的请求分散到多台服务器，避免单台过载。|spread requests across several servers so none gets overwhelmed|把请求分到多台服务器避免过载
Public-key cryptography|asymmetric encryption|security/encryption|Encrypts with a key that all may know and decrypts with one that stays private.|公钥密码学|非对称加密|安全/加密|用公开的密钥加密，用保密的私钥解密。|asymmetric encryption with a private and a shared key|一把公开一把保密的非对称加密方法
Version control|source history|tools/collaboration|Keeps every state of the source code, who changed it and why, and merges branches.|版本控制|源码历史|工具/协作|保存源代码的每个状态、修改者与原因，并合并分支。|keep source history and merge branches of a team|团队如何保存代码历史并合并分支
Recursion|self-reference in functions|programming/functions|A function that calls itself on a smaller problem until a base case ends it.|递归|函数自调用|编程/函数|函数在更小的问题上调用自身，直到基本情形结束。|function calling itself until a base case|函数自己调用自己直到基本情形
Cache invalidation|stale data removal|performance/consistency|Decides when a stored copy is out of date and must be fetched again.|缓存失效|陈旧数据清除|性能/一致性|判断存储的副本何时过期、需要重新获取。|when is a stored copy out of date and must be fetched again|存储的副本什么时候算过期要重新获取
Database index|access path|databases/performance|An ordered structure beside a table that finds rows without reading all of them.|数据库索引|访问路径|数据库/性能|表旁的有序结构，不必读取全部行即可找到所需行。|ordered structure beside a table to find rows without a full scan|不读全表就能找到行的有序结构
Transaction isolation|concurrent visibility|databases/concurrency|Says which changes of other transactions one may see while it runs.|事务隔离|并发可见性|数据库/并发|规定事务运行时能看到其他事务的哪些修改。|which changes of concurrent transactions are visible|并发事务之间能看到哪些修改
Machine translation|automatic translation|language/learning|Turns text of one human language into another by a trained model.|机器翻译|自动翻译|语言/学习|用训练好的模型把一种语言的文字转成另一种。|trained model that converts text between human languages|把一种语言的文字自动转成另一种的模型
Neural network|connectionist model|learning/models|Layers of weighted units whose weights are learned from examples.|神经网络|连接主义模型|学习/模型|由带权重的单元分层组成，权重从样例中学得。|layers of units with weights learned from examples|从样例中学习权重的分层单元
Overfitting|memorising the training data|learning/evaluation|A model fits its examples so closely that it fails on new ones.|过拟合|死记训练数据|学习/评估|模型对样例贴合过紧，以致在新数据上失败。|model memorises training examples and fails on new data|模型死记训练样例在新数据上表现差
Photosynthesis|light harvesting in plants|biology/energy|Plants make sugar and oxygen out of carbon dioxide and water with sunlight.|光合作用|植物的光能利用|生物/能量|植物利用阳光把二氧化碳和水变成糖和氧气。|how do leaves turn sunlight and carbon dioxide into sugar|叶子怎样用阳光把二氧化碳变成糖
Plate tectonics|continental drift|geology/earth|The crust is broken into plates whose motion raises mountains and causes earthquakes.|板块构造|大陆漂移|地质/地球|地壳分裂为板块，其运动隆起山脉并引发地震。|continental drift that raises mountains and causes earthquakes|大陆漂移为什么会造成山脉和地震
Natural selection|survival of the fittest|biology/evolution|Heritable traits that help to survive become more frequent over generations.|自然选择|适者生存|生物/演化|有助生存的可遗传性状在世代中变得更常见。|survival of the fittest over generations|适者生存如何改变后代的性状
General relativity|theory of gravitation|physics/gravity|Gravity is the curvature of spacetime caused by mass and energy.|广义相对论|引力理论|物理/引力|引力是质量与能量造成的时空弯曲。|gravity explained as curvature of spacetime|用时空弯曲解释引力的理论
Vaccination|immunisation|medicine/prevention|Trains the immune system with a harmless form of a pathogen.|疫苗接种|免疫接种|医学/预防|用无害的病原体形式训练免疫系统。|train the immune system with a harmless pathogen|用无害的病原体训练免疫系统
Inflation|rising price level|economics/money|Prices in general rise and a unit of money buys less.|通货膨胀|物价上涨|经济/货币|物价普遍上涨，单位货币能买到的东西变少。|why does money buy less when prices rise|物价上涨为什么钱能买的东西变少
Supply and demand|market equilibrium|economics/markets|Price settles where the quantity offered equals the quantity wanted.|供求关系|市场均衡|经济/市场|价格停在供给量等于需求量之处。|market price where offered quantity equals wanted quantity|市场上价格停在供给量和需求量相等的地方
Water cycle|hydrological circulation|earth/climate|Water evaporates from the sea, falls as rain and flows back in rivers.|水循环|水文循环|地球/气候|水从海洋蒸发，化为雨落下，再经河流流回。|evaporates from the sea, rain and rivers bring it back|海水蒸发变成雨再流回海里的过程
Antibiotic resistance|drug-proof bacteria|medicine/microbes|Bacteria that survive a drug multiply until it no longer works.|抗生素耐药性|超级细菌|医学/微生物|存活下来的细菌繁殖，直到药物不再有效。|bacteria that survive a drug until it no longer works|细菌在药物下存活繁殖使药失效
Compound interest|interest on interest|finance/saving|Interest is added to the sum and bears interest itself.|复利|利滚利|金融/储蓄|利息加入本金后再生利息。|interest on interest in a savings account|利滚利存钱怎么算
Zero-day vulnerability|unpatched flaw|security/attacks|A flaw that attackers use before its maker knows of it.|零日漏洞|未修补缺陷|安全/攻击|厂商知晓之前就被攻击者利用的缺陷。|flaw used by attackers before the maker can patch it|厂商还没修补就被攻击者利用的缺陷
Continuous integration|automated build checks|tools/testing|Every change is built and tested at once when it is merged.|持续集成|自动构建检查|工具/测试|每次合并的修改都立即构建和测试。|every merged change gets built and tested automatically|每次合并修改都自动构建和测试
Eventual consistency|convergent replicas|databases/distribution|Copies may differ for a while, and agree once no more changes come.|最终一致性|副本收敛|数据库/分布式|副本可暂时不同，停止修改后趋于一致。|replicas differ for a while but agree in the end|副本暂时不同但最后会一致
Rate limiting|request throttling|networking/protection|Refuses requests of a client that come faster than allowed.|限流|请求节流|网络/保护|拒绝超过允许速度的客户端请求。|throttling a client that sends requests too fast|客户端请求太快时怎样节流
Black hole|collapsed star|astronomy/gravity|A region from which not even light escapes, left when a massive star collapses.|黑洞|坍缩星|天文/引力|大质量恒星坍缩后留下、连光也无法逃脱的区域。|collapsed star from which light cannot escape|连光都逃不出去的坍缩恒星
Solar eclipse|moon hiding the sun|astronomy/sky|The moon passes before the sun and its shadow falls on the earth.|日食|月球遮日|天文/天空|月球经过太阳前方，影子落在地球上。|moon passes before the sun and throws its shadow|月球挡在太阳前面影子落在地球上
`
