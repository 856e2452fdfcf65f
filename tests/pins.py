"""What the data sets that are read from archives hold, to the document."""

# A part: documents; the first, middle and last one (labels, start, sha1 of the whole text); documents a label;
# documents without any text. The class counts of 20 Newsgroups are those of the table on its home page.
PINS = {
    "20ng": {
        "train": (
            11314,
            [
                (
                    "alt.atheism",
                    "From: mathew <mathew@mantis.co.uk>\nSubject: Alt.Atheism FAQ:",
                    "53a52155f68bdd5e4357b0a6cdf618aeb4180762",
                ),
                (
                    "rec.sport.baseball",
                    "From: st902415@pip.cc.brandeis.edu (Adam Levin)\nSubject: Ear",
                    "db69886eb2c15785d27f24ea3d00b3626796ae1d",
                ),
                (
                    "talk.religion.misc",
                    "Subject: Re: Albert Sabin\nFrom: rfox@charlie.usd.edu (Rich F",
                    "66d6a50df046d6be638c59e13532fe1d1543a237",
                ),
            ],
            "480 584 591 590 578 593 585 594 598 597 600 595 591 594 593 599 546 564 465 377",
            0,
        ),
        "test": (
            7532,
            [
                (
                    "alt.atheism",
                    "From: decay@cbnewsj.cb.att.com (dean.kaflowitz)\nSubject: Re:",
                    "e92f717ecdbfa3a30b5f91737fed3fd3d592be1b",
                ),
                (
                    "rec.sport.baseball",
                    "From: scott@asd.com (Scott Barman)\nSubject: Re: Box score ab",
                    "a37b33975f5ba600c26b8a690c3765a575e9b4dc",
                ),
                (
                    "talk.religion.misc",
                    "From: pharvey@quack.kfu.com (Paul Harvey)\nSubject: Re: I'll ",
                    "ebb34a6db7002c3feb008bef67edb90e45c59845",
                ),
            ],
            "319 389 394 392 385 395 390 396 398 397 399 396 393 396 394 398 364 376 310 251",
            0,
        ),
    },
    "20ng-stripped": {
        "train": (
            11314,
            [
                (
                    "alt.atheism",
                    "Archive-name: atheism/resources\nAlt-atheism-archive-name: re",
                    "aae2041436646366f7c053e9947cdbb6d92fdc94",
                ),
                (
                    "rec.sport.baseball",
                    "Just curious if anyone has started to standout early in the ",
                    "a702271e7c33399a1a75f9dc8c0dd25872cb2200",
                ),
                (
                    "talk.religion.misc",
                    "\nI hope I didn't award custody, Rich.  I purposely used \"han",
                    "96380a7b872eb25dd0cfb97c3f9181c1ddace52d",
                ),
            ],
            "480 584 591 590 578 593 585 594 598 597 600 595 591 594 593 599 546 564 465 377",
            300,
        ),
        "test": (
            7532,
            [
                (
                    "alt.atheism",
                    "\nI am not familiar with, or knowledgeable about the original",
                    "09c1f19513e113adeace0fdd70a944e8e6a2afd1",
                ),
                (
                    "rec.sport.baseball",
                    '\nI\'ve seen it as "Colmn" also.\n\nBlame the Associated Press. ',
                    "e905bedfe74fc1b42b1b52adce2392bfef56c145",
                ),
                (
                    "talk.religion.misc",
                    "\nYou are in the village. Many happy returns! Be seeing you!",
                    "53fd5e44bd2ac642c11ffb9680a85411121ec634",
                ),
            ],
            "319 389 394 392 385 395 390 396 398 397 399 396 393 396 394 398 364 376 310 251",
            215,
        ),
    },
    "20ng-body": {
        "train": (
            11314,
            [
                (
                    "alt.atheism",
                    "Archive-name: atheism/resources\nAlt-atheism-archive-name: re",
                    "ba418fc34fa429fe162b37cbb6dc44cb7f9562e8",
                ),
                (
                    "rec.sport.baseball",
                    "Just curious if anyone has started to standout early in the ",
                    "989b9eb8f2f4b4e076e7c92390f473768ced5b71",
                ),
                (
                    "talk.religion.misc",
                    "In article <1993Apr15.012537.26867@nntpd2.cxo.dec.com>, shar",
                    "5ba4dfb90fe46f20842e3542828420c53440ddba",
                ),
            ],
            "480 584 591 590 578 593 585 594 598 597 600 595 591 594 593 599 546 564 465 377",
            18,
        ),
        "test": (
            7532,
            [
                (
                    "alt.atheism",
                    "In article <healta.153.735242337@saturn.wwc.edu>, healta@sat",
                    "d7196e9656a09b861ab9317df3a6851e404b229d",
                ),
                (
                    "rec.sport.baseball",
                    "In article <1993Apr15.195452.14672@scott.skidmore.edu> jrogo",
                    "926375711c83d7ddad699bf74697e5521dbdf75a",
                ),
                (
                    "talk.religion.misc",
                    "In article <C64H4w.BFH@darkside.osrhe.uoknor.edu> \nbil@okcfo",
                    "d2b4e4652029ac581c6093f88aa0e4335fc1a585",
                ),
            ],
            "319 389 394 392 385 395 390 396 398 397 399 396 393 396 394 398 364 376 310 251",
            16,
        ),
    },
    "20ng-subject": {
        "train": (
            11314,
            [
                (
                    "alt.atheism",
                    "Alt.Atheism FAQ: Atheist Resources\nArchive-name: atheism/res",
                    "2ec8cdcb28aedb17a61db3f31d4430c8d22bd832",
                ),
                (
                    "rec.sport.baseball",
                    "Early BBDDD Returns?\nJust curious if anyone has started to s",
                    "dce625584acdc4e185c696c8a26b784348dcdc2d",
                ),
                (
                    "talk.religion.misc",
                    "Re: Albert Sabin\nIn article <1993Apr15.012537.26867@nntpd2.c",
                    "0e783301d4bb0231b2ff07812faa7a95507f74c7",
                ),
            ],
            "480 584 591 590 578 593 585 594 598 597 600 595 591 594 593 599 546 564 465 377",
            0,
        ),
        "test": (
            7532,
            [
                (
                    "alt.atheism",
                    "Re: about the bible quiz answers\nIn article <healta.153.7352",
                    "a6a656d36411e761e7101d8d039b2e7d827dda10",
                ),
                (
                    "rec.sport.baseball",
                    "Re: Box score abbrev woes\nIn article <1993Apr15.195452.14672",
                    "da8a764335bca9980410a81c53a3092f3ebeba73",
                ),
                (
                    "talk.religion.misc",
                    "Re: I'll see your demand and raise you... (was Re: After 200",
                    "6688f24713f5230c7b206fecdb1ce723e8ccf5bc",
                ),
            ],
            "319 389 394 392 385 395 390 396 398 397 399 396 393 396 394 398 364 376 310 251",
            0,
        ),
    },
    "imdb": {
        "train": (
            25000,
            [
                (
                    "neg",
                    "Story of a man who has unnatural feelings for a pig. Starts ",
                    "c60d08c2ebc0eac8fe1574bb838e4131875ace2f",
                ),
                (
                    "pos",
                    "Bromwell High is a cartoon comedy. It ran at the same time a",
                    "626c2b84bc253a0837258e6189ad1a854c8456b4",
                ),
                (
                    "pos",
                    "I always feel strange and guilty saying it (because I'm a fa",
                    "bc02d908671f778c3924dc7a35713ad280a45873",
                ),
            ],
            "12500 12500",
            0,
        ),
        "test": (
            25000,
            [
                (
                    "neg",
                    "Once again Mr. Costner has dragged out a movie for far longe",
                    "0e2d960e07506a0f866e9145c5e8bc30411557a1",
                ),
                (
                    "pos",
                    "I went and saw this movie last night after being coaxed to b",
                    "cf7e7e6678e3c354b289744ee36a6027e78c08a2",
                ),
                (
                    "pos",
                    "I was plagued by nightmares involving Sesame Street and the ",
                    "a64aadd2414ba611e82b61b589dab948f87a41e3",
                ),
            ],
            "12500 12500",
            0,
        ),
    },
    "reuters65": {
        "train": (
            5946,
            [
                (
                    "cocoa",
                    "BAHIA COCOA REVIEW\nShowers continued throughout the week in\n",
                    "d59c393dd6c1b7c5b00dc102a4aa470441b5959c",
                ),
                (
                    "gnp",
                    "BRAZIL'S GDP GREW 8.2 PCT LAST YEAR\nBrazil's Gross Domestic ",
                    "8eeda95fcb06dcc9c14c247ee9f4293545095a27",
                ),
                (
                    "ship",
                    "AUSTRALIAN UNIONS LAUNCH NEW SOUTH WALES STRIKES\nAustralian ",
                    "d14daa443ce138d16a0f2757e2416c555d8ac8c2",
                ),
            ],
            "1435 29 15 6 41 0 89 31 15 45 2 223 1 2673 4 10 49 70 38 0 6 0 13 3 3 140 2 27 "
            "26 2 32 1 4 8 13 7 6 176 70 0 22 3 9 12 13 1 2 0 1 30 15 0 29 107 4 9 90 2 17 "
            "225 19 1 12 0 8",
            0,
        ),
        "test": (
            2347,
            [
                (
                    "trade",
                    "ASIAN EXPORTERS FEAR DAMAGE FROM U.S.-JAPAN RIFT\nMounting tr",
                    "099728922f69ef2ccfe3487e37ff733eb06de7ce",
                ),
                (
                    "alum",
                    "ALCAN REDUCES COST OF PLANNED SMELTER\nAlcan Aluminium Ltd sa",
                    "01f86086369efcf95189760352358acbcb1a5b62",
                ),
                (
                    "gold",
                    "SIX KILLED IN SOUTH AFRICAN GOLD MINE ACCIDENT\nSix black min",
                    "4f1dd9f4f0be183a4d9d250dbebe4630d4fc6952",
                ),
            ],
            "620 16 8 5 12 1 21 13 9 15 0 98 2 1040 7 8 14 20 7 2 4 1 1 2 1 57 0 9 11 1 10 0 "
            "4 2 5 4 1 69 17 1 11 1 0 6 6 2 3 1 0 8 1 1 9 35 0 6 24 3 10 73 11 0 8 6 4",
            0,
        ),
    },
    "reuters90": {
        "train": (
            7770,
            [
                (
                    "cocoa",
                    "BAHIA COCOA REVIEW\nShowers continued throughout the week in\n",
                    "d59c393dd6c1b7c5b00dc102a4aa470441b5959c",
                ),
                (
                    "acq",
                    "GENCORP <GY> TO STUDY GENERAL PARTNER BID\nGenCorp Inc chairm",
                    "dc961e8fbf553bda3a471d13fa91265b64e6d06c",
                ),
                (
                    "ship",
                    "AUSTRALIAN UNIONS LAUNCH NEW SOUTH WALES STRIKES\nAustralian ",
                    "d14daa443ce138d16a0f2757e2416c555d8ac8c2",
                ),
            ],
            "1650 35 37 75 50 1 55 4 4 111 47 2 181 39 1 69 3 389 2 131 10 2877 13 37 101 "
            "94 433 5 1 14 16 16 9 5 347 41 40 4 46 6 15 12 1 75 10 30 538 140 2 75 8 1 2 8 "
            "124 16 2 30 2 20 5 3 3 2 5 18 55 23 35 37 1 197 21 24 13 14 78 16 126 1 5 11 9 "
            "18 369 87 212 19 45 21",
            0,
        ),
        "test": (
            3019,
            [
                (
                    "trade",
                    "ASIAN EXPORTERS FEAR DAMAGE FROM U.S.-JAPAN RIFT\nMounting tr",
                    "099728922f69ef2ccfe3487e37ff733eb06de7ce",
                ),
                (
                    "crude",
                    "LUKMAN SEES STABLE OIL PRICE FOR NEXT COUPLE YEARS\nThe curre",
                    "29653d618b004b81baf684db9465e2330997b31c",
                ),
                (
                    "gold",
                    "SIX KILLED IN SOUTH AFRICAN GOLD MINE ACCIDENT\nSix black min",
                    "4f1dd9f4f0be183a4d9d250dbebe4630d4fc6952",
                ),
            ],
            "719 23 14 30 18 1 18 2 3 28 18 1 56 20 2 28 1 189 1 44 4 1087 10 17 35 30 149 4 "
            "1 5 6 4 7 1 131 12 14 1 21 2 14 3 1 24 6 19 179 34 4 30 1 2 2 6 47 11 1 10 1 12 "
            "7 3 3 1 3 9 18 2 24 12 1 89 8 10 13 11 33 11 36 1 2 5 4 12 117 37 71 10 14 13",
            0,
        ),
    },
    "reuters-random70": {
        "train": (
            7956,
            [
                (
                    "ship",
                    "WORK AT CHITTAGONG PORT HALTED BY STRIKE\nCargo handling rema",
                    "eb46955b8a1db52f20535e65c213949a94fe25d1",
                ),
                (
                    "earn",
                    "<M-CORP INC> RAISES DIVIDEND\nSemi-annual div 7-1/2 cts vs fi",
                    "74c45410b3d97c7301f6e8f2a34f131599f85929",
                ),
                (
                    "trade",
                    "EC PUBLISHES LIST OF U.S. BARRIERS TO FREE TRADE\nThe Europea",
                    "4a3585609f5b0779072f7c2da04f06c8291bef2d",
                ),
            ],
            "1694 47 2 33 0 79 3 53 1 1 1 52 6 4 109 54 2 175 0 1 45 3 1 91 3 440 1 "
            "2 1 148 8 2774 2 1 20 45 109 91 421 8 2 22 1 16 13 10 6 372 4 36 46 5 "
            "58 7 23 13 1 2 2 1 79 12 36 571 131 5 96 10 3 3 9 131 20 3 33 1 0 29 11 "
            "2 4 5 4 2 1 6 22 1 62 16 44 0 42 1 0 3 2 202 27 1 23 18 22 81 15 24 132 "
            "2 5 11 3 10 26 390 100 200 1 24 49 32",
            0,
        ),
        "test": (
            3411,
            [
                (
                    "earn",
                    "H.F. AHMANSON AND CO <AHM> 3RD QTR NET\nShr 41 cts vs 80 cts\n",
                    "ad8e19a0830f86d0a12a42552e9841766bf4ad33",
                ),
                (
                    "grain wheat",
                    "MOROCCO TENDERS THURSDAY FOR PL 480 WHEAT\nMorocco will tende",
                    "8d97465652a29d0b51cc69fb3ca305f4652349a7",
                ),
                (
                    "corn grain oilseed soybean wheat",
                    "CBT TRADERS SEE LOWER SOYBEAN EXPORT INSPECTIONS\nThe USDA's ",
                    "c6eb30300176114061d49a52256c27fdfcf58817",
                ),
            ],
            "754 16 2 21 1 37 0 22 1 0 0 24 0 3 36 24 1 78 1 1 18 0 0 21 1 194 0 1 0 "
            "69 7 1213 1 1 8 20 54 44 207 2 0 3 0 11 8 8 1 141 3 29 21 3 18 2 12 4 0 "
            "0 0 2 35 5 15 230 59 2 34 1 0 1 5 61 9 0 10 2 1 12 1 2 0 1 2 1 0 2 13 0 "
            "22 11 23 1 9 0 2 0 1 103 10 0 12 9 3 39 6 8 52 0 3 6 1 5 7 161 37 106 1 "
            "8 20 12",
            0,
        ),
    },
}
