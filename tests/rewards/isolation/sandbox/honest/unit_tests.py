import unittest


class TestSum(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(sum([1, 2]), 3)


assert unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromTestCase(TestSum)).wasSuccessful()
