/** Chemical elements in the order of their numbers: symbol, English name, Chinese name. */

export const ELEMENTS = `H Hydrogen 氢,He Helium 氦,Li Lithium 锂,Be Beryllium 铍,B Boron 硼,C Carbon 碳,N Nitrogen 氮,
O Oxygen 氧,F Fluorine 氟,Ne Neon 氖,Na Sodium 钠,Mg Magnesium 镁,Al Aluminium 铝,Si Silicon 硅,P Phosphorus 磷,
S Sulfur 硫,Cl Chlorine 氯,Ar Argon 氩,K Potassium 钾,Ca Calcium 钙,Sc Scandium 钪,Ti Titanium 钛,V Vanadium 钒,
Cr Chromium 铬,Mn Manganese 锰,Fe Iron 铁,Co Cobalt 钴,Ni Nickel 镍,Cu Copper 铜,Zn Zinc 锌,Ga Gallium 镓,
Ge Germanium 锗,As Arsenic 砷,Se Selenium 硒,Br Bromine 溴,Kr Krypton 氪,Rb Rubidium 铷,Sr Strontium 锶,
Y Yttrium 钇,Zr Zirconium 锆,Nb Niobium 铌,Mo Molybdenum 钼,Tc Technetium 锝,Ru Ruthenium 钌,Rh Rhodium 铑,
Pd Palladium 钯,Ag Silver 银,Cd Cadmium 镉,In Indium 铟,Sn Tin 锡,Sb Antimony 锑,Te Tellurium 碲,I Iodine 碘,
Xe Xenon 氙,Cs Caesium 铯,Ba Barium 钡,La Lanthanum 镧,Ce Cerium 铈,Pr Praseodymium 镨,Nd Neodymium 钕,
Pm Promethium 钷,Sm Samarium 钐,Eu Europium 铕,Gd Gadolinium 钆,Tb Terbium 铽,Dy Dysprosium 镝,Ho Holmium 钬,
Er Erbium 铒,Tm Thulium 铥,Yb Ytterbium 镱,Lu Lutetium 镥,Hf Hafnium 铪,Ta Tantalum 钽,W Tungsten 钨,Re Rhenium 铼,
Os Osmium 锇,Ir Iridium 铱,Pt Platinum 铂,Au Gold 金,Hg Mercury 汞,Tl Thallium 铊,Pb Lead 铅,Bi Bismuth 铋,
Po Polonium 钋,At Astatine 砹,Rn Radon 氡,Fr Francium 钫,Ra Radium 镭,Ac Actinium 锕,Th Thorium 钍,
Pa Protactinium 镤,U Uranium 铀`
